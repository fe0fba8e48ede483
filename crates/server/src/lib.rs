//! The memcached classic text protocol over any [`index::Index`], durably.
//!
//! A reply means that what it tells is durable: a client that has read `STORED` will find the item after a crash, and
//! so will a client that has read a value. Each turn of a connection takes all that the client has sent, looks up
//! consecutive `get`s together, and answers with one write.
//!
//! ```no_run
//! # fn serve(index: std::sync::Arc<dyn index::Index>) -> Result<(), wollemi_server::Error> {
//! let server = wollemi_server::Server::bind(wollemi_server::Config::default(), index)?;
//! println!("listening on {:?}", server.addresses());
//! let report = server.run(&wollemi_server::Shutdown::on_signals())?;
//! println!("{} connections served", report.connections);
//! # Ok(())
//! # }
//! ```
//!
//! | module       | what it holds                                              |
//! |--------------|------------------------------------------------------------|
//! | `parse`      | bytes to requests: pure                                    |
//! | `item`       | the layout of an item in a value                           |
//! | `record`     | what the server itself remembers, and where                |
//! | `store`      | what the commands do, each as one edit of the index        |
//! | `session`    | requests to answers                                        |
//! | `connection` | one client: reading, writing, bounds                       |
//! | `serve`      | threads, accepting, stopping                               |
//! | `sweep`      | removing dead items                                        |

mod config;
mod connection;
mod counters;
mod error;
mod item;
mod number;
mod parse;
mod record;
mod serve;
mod session;
mod shutdown;
mod store;
mod sweep;

pub use config::{Config, MAX_THREADS, MoreStats};
pub use error::Error;
pub use serve::{Report, Server, run};
pub use shutdown::Shutdown;

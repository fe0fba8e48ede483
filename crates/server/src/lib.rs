//! The protocols of memcached and Redis over any [`index::Index`], durably.
//!
//! A reply means that what it tells is durable: a client that has read `STORED` will find the item after a crash, and
//! so will a client that has read a value. Each turn of a connection takes all that the client has sent, looks up
//! consecutive `get`s together, and answers with one write.
//!
//! ```no_run
//! # fn serve(index: std::sync::Arc<dyn index::Index>) -> Result<(), wollemi_server::Error> {
//! let server = wollemi_server::Server::bind(wollemi_server::Config::default(), index)?;
//! println!("listening on {:?}", server.addresses(wollemi_server::Protocol::Memcached));
//! let report = server.run(&wollemi_server::Shutdown::on_signals())?;
//! println!("{} connections served", report.connections);
//! # Ok(())
//! # }
//! ```
//!
//! | module       | what it holds                                              |
//! |--------------|------------------------------------------------------------|
//! | `item`       | the layout of an item in a value                           |
//! | `record`     | what the server itself remembers, and where                |
//! | `store`      | what the commands do, each as one edit of the index        |
//! | `memcached`  | bytes to requests (`parse`), requests to answers (`session`) |
//! | `redis`      | Redis: bytes to commands (`parse`), and the commands       |
//! | `databases`  | the items of each database, and the gate before them       |
//! | `backup`     | backups while clients are served                           |
//! | `memory`     | how much the items may take, and who goes (`frequency`)     |
//! | `passwords`  | who may come in                                            |
//! | `limits`     | what may change while the server runs                      |
//! | `connection` | one client: reading, writing, bounds                       |
//! | `access`     | when items were last asked for                             |
//! | `counters`   | what is counted                                            |
//! | `latency`    | how long commands take                                     |
//! | `slow`       | the commands that took long                                |
//! | `seldom`     | what is told of requests that fail                         |
//! | `metrics`    | what is told to Prometheus, and how                        |
//! | `clients`    | the connections that are open                              |
//! | `files`      | room for their sockets                                     |
//! | `listen`     | sockets                                                    |
//! | `tls`        | encryption                                                 |
//! | `serve`      | threads, accepting, stopping                               |
//! | `fuzzing`    | what holds of the parsers whatever comes                   |
//! | `sweep`      | removing dead items                                        |

mod access;
mod backup;
mod clients;
mod config;
mod connection;
mod counters;
mod cross_protocol;
mod databases;
mod error;
mod files;
mod freed;
mod frequency;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod item;
mod latency;
mod limits;
mod listen;
mod memcached;
mod memory;
mod metrics;
mod number;
mod passwords;
mod record;
mod redis;
mod seldom;
mod serve;
mod shared;
mod shutdown;
mod slow;
mod store;
mod sweep;
mod tls;

pub use backup::Copying;
pub use config::{
    Address, Backup, BackupTo, Change, Commit, Config, GiveBack, LARGEST_VALUE, MAX_THREADS, Maps, Moment,
    MoreStats, NotMade, Protocol, Reload, Tls,
};
pub use databases::COUNT as DATABASES;
pub use error::Error;
pub use metrics::{Metric, MoreMetrics};
pub use serve::{Report, Server, run};
pub use shutdown::Shutdown;

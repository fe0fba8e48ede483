//! The protocols of memcached and Redis over a database ([`wollemi::Db`]), durably.
//!
//! A reply means that its effect is durable, at the pool's level and unless the sync policy defers it: a client that
//! has read `STORED` will find the item after a crash, and so will a client that has read a value. In each turn of a
//! connection the server reads what the client has sent, looks up consecutive `get`s together, and sends the answers
//! together.
//!
//! ```no_run
//! # fn serve(db: &wollemi::Db) -> Result<(), wollemi_server::Error> {
//! let server = wollemi_server::Server::bind(wollemi_server::Config::default(), db)?;
//! println!("listening on {:?}", server.addresses(wollemi_server::Protocol::Memcached));
//! let report = server.run(&wollemi_server::Shutdown::on_signals())?;
//! println!("{} connections served", report.connections);
//! # Ok(())
//! # }
//! ```
//!
//! | room       | what it holds                                           | uses                           |
//! |------------|---------------------------------------------------------|--------------------------------|
//! | `serve`    | puts the others together: binding, running, stopping    | `commands`, `ops`, `net`       |
//! | `commands` | what requests do, and what a connection remembers       | `proto`, `ops`, `net`, `items` |
//! | `ops`      | configuration, metrics, the slow log, backups, sweeping | `net`, `items`                 |
//! | `net`      | sockets, encryption, connections, threads               | no protocol and no item        |
//! | `fuzzing`  | what the parsers guarantee for any input                | `proto`                        |
//! | `proto`    | bytes to requests, answers to bytes, without I/O        | `items`                        |
//! | `items`    | what both protocols share: items, their store, eviction | the database                   |
//!
//! All may use `freed`, `counters`, `clock` and `error`. `tests/rooms.rs` checks this.

#![forbid(unsafe_code)]

mod clock;
mod commands;
mod counters;
mod error;
mod freed;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod items;
mod net;
mod ops;
mod proto;
mod serve;

/// The items below both protocols, for tests of the states that crashes leave.
#[cfg(feature = "items")]
pub mod stored {
    pub use crate::items::databases::{Databases, ItemTransaction, NotMade};
    pub use crate::items::item::{Header, Item, PLACE};
    pub use crate::items::memory::MemoryLimit;
    pub use crate::items::record::StoreRecord;
    pub use crate::items::store::classic::Verb;
    pub use crate::items::store::{Decision, Failure, ItemStore, Outcome};
}

pub use error::Error;
pub use items::databases::COUNT as DATABASES;
pub use net::listen::Address;
pub use net::shutdown::Shutdown;
pub use net::tls::Tls;
pub use ops::config::{Config, Host, LARGEST_VALUE, MAX_THREADS};
pub use ops::copying::{BackupTo, Copying};
pub use ops::sync::{Sync, UnknownSync};
pub use serve::{Protocol, ServeReport, Server, run};

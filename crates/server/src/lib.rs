//! The protocols of memcached and Redis over a database ([`wollemi::Db`]), durably.
//!
//! A reply means that its effect is durable: a client that has read `STORED` will find the item after a crash, and so
//! will a client that has read a value. Each turn of a connection takes all that the client has sent, looks up
//! consecutive `get`s together, and answers with one write.
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
//! | room       | what it holds                                                             |
//! |------------|---------------------------------------------------------------------------|
//! | `serve`    | puts the others together: binding, running, stopping                       |
//! | `fuzzing`  | what holds of the parsers whatever comes                                   |
//! | `commands` | what requests do, and what a connection remembers                          |
//! | `proto`    | memcached's protocol and Redis's: bytes to requests                        |
//! | `ops`      | configuration, metrics, the slow log, backups, sweeping                    |
//! | `net`      | sockets, encryption, connections, the threads that serve them              |
//! | `items`    | what both protocols share: items, the store of them, eviction              |
//!
//! Each uses those below it in this table alone, and `freed`, `counters`, `clock` and `error`.

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

/// The items below both protocols, for tests of what crashes leave of them.
#[cfg(feature = "items")]
pub mod stored {
    pub use crate::items::databases::{Databases, NotMade, Transaction};
    pub use crate::items::item::{Header, Item, PLACE};
    pub use crate::items::memory::Memory;
    pub use crate::items::record::Record;
    pub use crate::items::store::classic::Verb;
    pub use crate::items::store::{Decision, Failure, Outcome, Store};
}

pub use error::Error;
pub use items::databases::COUNT as DATABASES;
pub use net::listen::Address;
pub use net::shutdown::Shutdown;
pub use net::tls::Tls;
pub use ops::config::{Config, LARGEST_VALUE, MAX_THREADS};
pub use ops::copying::{BackupTo, Copying};
pub use ops::host::Host;
pub use ops::sync::{Sync, UnknownSync};
pub use serve::{Protocol, Report, Server, run};

//! memcached's requests.
//!
//! | module                     | what it holds                                               |
//! |----------------------------|-------------------------------------------------------------|
//! | `connection`               | the turns of a connection                                   |
//! | `dispatch`                 | a request as it arrives                                     |
//! | `lookups`, `sets`, `touch` | requests that are carried out together, or piece by piece   |
//! | `classic`, `meta`, `stats` | the other requests                                          |
//! | `timing`                   | the durations of requests                                   |
//! | `handler`                  | the worker and the client, and what requests have in common |
//! | `dialect`                  | the protocol, as sockets and metrics know it                |
//! | `growth`                   | by how much a request may grow the items                    |
//!
//! No two modules use each other, directly or through others.

mod classic;
mod connection;
mod dialect;
mod dispatch;
mod growth;
mod handler;
mod lookups;
mod meta;
mod sets;
mod stats;
mod timing;
mod touch;

pub use connection::Memcached;
pub use dialect::DIALECT;

//! memcached's requests.

mod connection;
mod growth;
mod handler;
mod lookups;
mod meta;
mod sets;
mod stats;
mod timing;
mod touch;

use crate::proto::memcached::{base64_key, parse};
pub use connection::{DIALECT, Memcached};
use handler::{Next, Session, VERSION, show};

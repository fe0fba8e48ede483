//! What concerns a database as a whole, or more than one key of it. One program, as it has much in common to compile.

mod backup;
mod batch;
mod ends;
mod expiring;
mod serializable;
#[cfg(target_os = "linux")]
mod shrink;
mod snapshot;
mod together;
mod transaction;
mod unordered;
mod watch;

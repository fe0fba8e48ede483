//! Tests of a database as a whole, or of more than one key. One program, because they share much code to compile.

mod backup;
mod batch;
mod ends;
mod expiring;
mod expiring_operations;
mod serializable;
#[cfg(target_os = "linux")]
mod shrink;
mod snapshot;
mod threads;
mod together;
mod transaction;
mod transaction_operations;
mod unordered;
mod view;
mod watch;

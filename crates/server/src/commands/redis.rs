//! Redis's commands.

mod admin;
mod ahead;
mod backup;
mod catalogue;
mod client;
mod config;
mod connection;
pub mod context;
mod decimal;
mod describe;
mod dispatch;
mod durable;
mod expiry;
mod glob;
mod help;
mod info;
mod keys;
mod numbers;
mod random;
mod scan;
mod scripts;
mod sets;
mod slowlog;
mod state;
mod strings;
mod syntax;
mod transaction;

pub use connection::{DIALECT, Redis, VERSION};

use crate::proto::redis::{parse, reply};

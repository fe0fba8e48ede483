//! The protocols.

pub mod http;
pub mod memcached;
pub mod redis;

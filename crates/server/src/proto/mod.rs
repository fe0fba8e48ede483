//! The protocols: from bytes to requests, and from answers to bytes.
//!
//! I1 Pure: no sockets, no clock, and nothing of the connection or the database. A parser remembers only how far it
//!    has read an unfinished request.
//!
//! | module      | what it holds                                                |
//! |-------------|--------------------------------------------------------------|
//! | `memcached` | memcached's text protocol, classic and meta commands         |
//! | `redis`     | Redis's protocol, RESP2 and RESP3                            |
//! | `http`      | recognizes HTTP requests that arrive where either is spoken  |
//!
//! Not here: what the requests do (`commands`).

pub mod http;
pub mod memcached;
pub mod redis;

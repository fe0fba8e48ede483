//! The protocols: from bytes to requests, and from answers to bytes.
//!
//! I1 Pure: no sockets, no clock, and nothing of the connection or the database. Between two calls a parser remembers
//!    its limits, the arguments of the last request, and how far it has read, or has to skip, an unfinished one.
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

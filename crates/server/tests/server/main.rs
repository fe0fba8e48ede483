//! The server from outside: over the reference index, in this process, through sockets.

mod bounds;
mod dialogues;
mod items;
mod limits;
mod metrics;
mod order;
mod passwords;
mod pymemcache;
mod python;
mod redis;
mod redis_py;
mod slow;
mod stopping;
mod support;
mod tls;
mod twin;

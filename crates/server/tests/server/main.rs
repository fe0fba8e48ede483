//! The server from outside: over the reference index, in this process, through sockets.

mod ahead;
mod bounds;
mod crowds;
mod dialogues;
mod items;
mod limits;
mod memory;
mod metrics;
mod order;
mod passwords;
mod persists;
mod pylibmc;
mod pymemcache;
mod python;
mod redis;
mod redis_py;
mod slow;
mod stopping;
mod support;
mod tls;
mod tools;
mod transactions;
mod twin;

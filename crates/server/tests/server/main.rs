//! The server from outside: over the reference index, in this process, through sockets.

mod bounds;
mod crowds;
mod dialogues;
mod items;
mod memory;
mod order;
mod passwords;
mod persists;
mod pymemcache;
mod python;
mod redis;
mod redis_py;
mod stopping;
mod support;
mod transactions;
mod twin;

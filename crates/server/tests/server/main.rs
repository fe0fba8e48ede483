//! The server from outside, in this process, through sockets: over the reference index, and, for what it must answer to
//! real clients and as real servers do, over a pool.

// The program's own files say `server`.
extern crate wollemi_server as server;

mod ahead;
mod backup;
mod bounds;
mod counted;
mod crowds;
mod damaged;
mod dialogues;
mod disk;
mod http;
mod items;
mod limits;
mod memory;
mod metrics;
mod order;
mod passwords;
mod persists;
mod pool;
mod pylibmc;
mod pymemcache;
mod python;
mod randomkey;
mod redis;
mod redis_py;
mod slow;
mod stopping;
mod support;
mod tls;
mod together;
mod tools;
mod transactions;
mod turns;
mod twin;
mod walks;

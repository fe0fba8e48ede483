//! Tests of the server in this process, through sockets: over the reference index, and, for the comparisons with real
//! clients and servers, over a pool.

// The program's own files use the name `server`.
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
mod logged;
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

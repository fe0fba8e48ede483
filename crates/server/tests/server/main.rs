//! The server from outside: over the reference index, in this process, through sockets.

mod bounds;
mod dialogues;
mod items;
mod order;
mod pymemcache;
mod python;
mod stopping;
mod support;

//! Commands: what the requests of each protocol do, and what a connection remembers between two of them.
//!
//! | module      | what it holds                                                      |
//! |-------------|--------------------------------------------------------------------|
//! | `memcached` | memcached's requests                                               |
//! | `redis`     | Redis's commands                                                   |
//! | `http`      | connections that end because an HTTP request arrived               |
//!
//! Not here: the bytes of requests and answers (`proto`), the items (`items`).

mod http;
pub mod memcached;
pub mod redis;

use crate::net::clients::Client;
use crate::net::connection::{Answered, Protocol, Sink};
use crate::net::dialect::Dialect;
use crate::ops::shared::Worker;
use memcached::Memcached;
use redis::Redis;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// All protocols of the server, by their places.
pub static DIALECTS: [&Dialect; 2] = [&memcached::DIALECT, &redis::DIALECT];

/// A connection, by its protocol.
pub enum Session {
    Memcached(Memcached),
    Redis(Box<Redis>),
}

impl Protocol for Session {
    type Worker = Worker;

    fn begin(worker: &Rc<Worker>, client: Arc<Client>) -> Session {
        let worker = worker.clone();
        match *client.protocol == redis::DIALECT {
            true => Session::Redis(Box::new(Redis::new(worker, client))),
            false => Session::Memcached(Memcached::new(worker, client)),
        }
    }

    fn longest(&self) -> usize {
        match self {
            Session::Memcached(memcached) => memcached.longest(),
            Session::Redis(redis) => redis.longest(),
        }
    }

    async fn answer_all(&mut self, unread: &[u8], sink: &mut Sink<'_>) -> io::Result<Answered> {
        match self {
            Session::Memcached(memcached) => memcached.answer_all(unread, sink).await,
            Session::Redis(redis) => redis.answer_all(unread, sink).await,
        }
    }
}

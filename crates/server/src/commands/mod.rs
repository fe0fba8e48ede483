//! The protocols: bytes to requests (`parse` of each), requests to what they ask of the items, and to answers.

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

/// All that the server speaks, in the order of their places.
pub static DIALECTS: [&Dialect; 2] = [&memcached::DIALECT, &redis::DIALECT];

/// A connection, by what its client speaks.
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

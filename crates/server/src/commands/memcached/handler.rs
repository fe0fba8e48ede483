//! The handler of a connection's requests: it has the worker and the client. Here: what several requests have in
//! common.

use crate::counters::Counter;
use crate::items::access::Seen;
use crate::items::store::classic::Verb;
use crate::items::store::{Failure, ItemStore, Outcome};
use crate::net::clients::Client;
use crate::ops::rate_limit;
use crate::ops::shared::{Shared, Worker};
use crate::proto::memcached::answer::server_error;
use crate::proto::memcached::request::{Body, MAX_KEY, Request, stored_key};
use std::rc::Rc;
use std::sync::Arc;

/// Carries out the requests of one connection.
pub struct Handler {
    pub worker: Rc<Worker>,
    pub client: Arc<Client>,
}

impl Handler {
    pub fn new(worker: Rc<Worker>, client: Arc<Client>) -> Handler {
        Handler { worker, client }
    }

    pub fn shared(&self) -> &Shared {
        &self.worker.shared
    }

    /// Returns the database that memcached's clients see.
    pub fn store(&self) -> &ItemStore {
        self.shared().databases.first()
    }

    pub fn add(&self, counter: Counter, by: u64) {
        self.worker.add(counter, by);
    }

    /// Logs the client in, as memcached's `-Y` wants it: by a `set` of any key to a user's name and password, with a
    /// blank between. Returns whether that succeeded.
    pub fn log_in(&self, request: &Request<'_>, out: &mut Vec<u8>) -> bool {
        let said = match request {
            Request::Store {
                body: Body::Set { .. },
                data,
            } => data,
            _ => &[][..],
        };
        let blank = said.iter().position(|&byte| byte == b' ');
        let known = blank.is_some_and(|blank| {
            let (user, password) = (&said[..blank], &said[blank + 1..]);
            self.shared().passwords.authenticate(user, password)
        });
        out.extend_from_slice(match known {
            true => b"STORED\r\n",
            false => b"CLIENT_ERROR unauthenticated\r\n",
        });
        known
    }

    /// Counts, logs and answers a failure.
    pub fn fail(&self, failure: &Failure, noreply: bool, out: &mut Vec<u8>) {
        self.add(Counter::Failures, 1);
        rate_limit::failed("memcached", failure);
        if !noreply {
            server_error(&failure.to_string(), out);
        }
    }

    /// Deletes the old value of a `set`, or of an `ms` in any mode, whose new value is too large or finds no room, as
    /// memcached does.
    pub fn lose_old(&self, key: &[u8], binary: bool, now: u64) -> Result<(), Failure> {
        let space = &mut [0; MAX_KEY];
        self.store().delete(stored_key(key, binary, space), now).map(drop)
    }

    /// Returns the current time in seconds since the server started.
    pub fn second(&self) -> u64 {
        self.shared().started.elapsed().as_secs()
    }

    /// Notes an access of a key: a client has `fetched` or else stored its item.
    pub fn note(&self, key: &[u8], fetched: bool) {
        let second = self.second();
        self.shared().access.set(key, Seen { fetched, second });
    }

    /// Counts a storage command by its outcome. Without a verb it is a `set`.
    pub fn count_store(&self, verb: Option<Verb>, outcome: Outcome) {
        self.add(Counter::Sets, 1);
        if let Some(Verb::Cas(_)) = verb {
            let counter = match outcome {
                Outcome::Done => Counter::CasHits,
                Outcome::Exists => Counter::CasBadValue,
                _ => Counter::CasMisses,
            };
            self.add(counter, 1);
        }
    }

    /// Counts a touch of a key.
    pub fn count_touch(&self, hit: bool) {
        self.add(Counter::Touches, 1);
        self.add(
            match hit {
                true => Counter::TouchHits,
                false => Counter::TouchMisses,
            },
            1,
        );
    }

    /// Counts the deletion of a key.
    pub fn count_delete(&self, hit: bool) {
        self.add(
            match hit {
                true => Counter::DeleteHits,
                false => Counter::DeleteMisses,
            },
            1,
        );
    }

    /// Counts an increment (`up`) or decrement of a key.
    pub fn count_step(&self, up: bool, hit: bool) {
        self.add(
            match (up, hit) {
                (true, true) => Counter::IncrHits,
                (true, false) => Counter::IncrMisses,
                (false, true) => Counter::DecrHits,
                (false, false) => Counter::DecrMisses,
            },
            1,
        );
    }
}

//! memcached's protocol on a connection: consecutive `get`s are looked up together, consecutive `set`s carried out
//! together, and all else is answered one by one. The memory that other writes will look at is prefetched, for as many
//! of them as have come.

use super::handler::{self, Next, Session};
use super::lookups::Lookups;
use super::sets::Sets;
use super::timing::NAMES;
use crate::items::store::BATCH;
use crate::net::clients::Client;
use crate::net::connection::{Answered, Sink};
use crate::net::dialect::Dialect;
use crate::ops::shared::{Shared, Worker};
use crate::proto::memcached::parse::{Limits, Meta, MetaVerb, Parser, Request, Step};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// The protocol.
pub static DIALECT: Dialect = Dialect {
    place: 0,
    name: "memcached",
    too_many: b"ERROR Too many open connections\r\n",
    not_durable: |why| {
        let mut out = Vec::new();
        handler::server_error(why, &mut out);
        out
    },
    command: |number| NAMES.get(number).copied(),
};

/// One memcached connection.
pub struct Memcached {
    session: Session,
    parser: Parser,
    /// Whether the client has said who it is, where it must.
    known: bool,
}

impl Memcached {
    pub fn new(worker: Rc<Worker>, client: Arc<Client>) -> Memcached {
        Memcached {
            known: worker.shared.passwords.none(),
            parser: Parser::new(limits(&worker.shared)),
            session: Session::new(worker, client),
        }
    }

    /// Carries out all `set`s.
    async fn finish_sets(&self, sets: &mut Sets<'_>, sink: &mut Sink<'_>) -> io::Result<()> {
        if !sets.is_empty() {
            self.session.set_all(sets, sink.now, &mut sink.out);
            sink.send_if_enough().await?;
        }
        Ok(())
    }

    /// Answers all lookups.
    async fn finish(&self, lookups: &mut Lookups<'_>, sink: &mut Sink<'_>) -> io::Result<()> {
        while lookups.waiting() > 0 {
            self.session.look_up(lookups, sink.now, &mut sink.out);
            sink.send_if_enough().await?;
        }
        Ok(())
    }

    async fn look_up_if_enough(&self, lookups: &mut Lookups<'_>, sink: &mut Sink<'_>) -> io::Result<()> {
        while lookups.waiting() >= BATCH {
            self.session.look_up(lookups, sink.now, &mut sink.out);
            sink.send_if_enough().await?;
        }
        Ok(())
    }

    /// Prefetches what a request and those in `input`, behind it, will look at, and says how many bytes the latter
    /// have.
    fn prefetch<'b>(&self, request: &Request<'b>, input: &'b [u8]) -> usize {
        let mut scout = self.parser.clone();
        let mut keys = [&[][..]; BATCH];
        let (mut count, mut read) = (0, 0);
        let mut key = request.key();
        loop {
            if let Some(key) = key {
                keys[count] = key;
                count += 1;
            }
            if count == BATCH {
                break;
            }
            let Step::Request { used, request, .. } = scout.next(&input[read..]) else {
                break;
            };
            read += used;
            key = request.key();
        }
        if count > 1 {
            let shared = self.session.shared();
            shared.databases.first().prefetch(&keys[..count]);
            shared.access.prefetch(&keys[..count]);
        }
        read
    }

    async fn answer(&self, request: Request<'_>, noreply: bool, sink: &mut Sink<'_>) -> io::Result<Next> {
        let Request::GetAndTouch {
            lifetime,
            ref keys,
            unique,
        } = request
        else {
            let next = self.session.answer(&request, noreply, sink.now, &mut sink.out);
            sink.send_if_enough().await?;
            return Ok(next);
        };
        let mut end: &[u8] = b"END\r\n";
        for key in keys.clone() {
            let answered = self
                .session
                .get_and_touch(key, lifetime, unique, sink.now, &mut sink.out);
            if answered.is_err() {
                end = b"";
                break;
            }
            sink.send_if_enough().await?;
        }
        sink.out.extend_from_slice(end);
        self.session.timed(&request, sink.now);
        Ok(Next::GoOn)
    }

    /// Maximum number of bytes that a request can occupy now.
    pub fn longest(&self) -> usize {
        limits(self.session.shared()).longest()
    }

    /// Answers the whole requests at the beginning of `unread`.
    pub async fn answer_all(&mut self, unread: &[u8], sink: &mut Sink<'_>) -> io::Result<Answered> {
        self.parser.set_limits(limits(self.session.shared()));
        let mut lookups = Lookups::default();
        // Only one of both, sets or lookups, waits at a time.
        let mut sets = Sets::default();
        let mut used = 0;
        // Up to where what requests look at has been prefetched.
        let mut prefetched = 0;
        let want = loop {
            let (more, request, noreply) = match self.parser.next(&unread[used..]) {
                Step::More { used: more, want } => {
                    used += more;
                    break Some(want);
                }
                Step::Request {
                    used: more,
                    request,
                    noreply,
                } => (more, request, noreply),
            };
            used += more;
            if !self.known && request != Request::Http {
                self.known = self.session.let_in(&request, &mut sink.out);
                if !self.known {
                    break None;
                }
                continue;
            }
            if sets.is_full() {
                self.finish_sets(&mut sets, sink).await?;
            }
            if sets.take(&request, noreply) {
                self.finish(&mut lookups, sink).await?;
                continue;
            }
            self.finish_sets(&mut sets, sink).await?;
            match request {
                Request::Get { mut keys, unique } => {
                    let mut next = keys.next();
                    while let Some(key) = next {
                        next = keys.next();
                        lookups.push(key, unique, next.is_none());
                        self.look_up_if_enough(&mut lookups, sink).await?;
                    }
                }
                Request::Meta(Meta {
                    verb: MetaVerb::Get,
                    key,
                    flags,
                }) if flags.only_look() && !flags.binary => {
                    lookups.push_meta(key, flags);
                    self.look_up_if_enough(&mut lookups, sink).await?;
                }
                request => {
                    self.finish(&mut lookups, sink).await?;
                    if used > prefetched && used < unread.len() {
                        prefetched = used + self.prefetch(&request, &unread[used..]);
                    }
                    if self.answer(request, noreply, sink).await? == Next::Close {
                        break None;
                    }
                }
            }
        };
        self.finish(&mut lookups, sink).await?;
        self.finish_sets(&mut sets, sink).await?;
        Ok(Answered { used, want })
    }
}

/// What a connection may ask to hold now.
fn limits(shared: &Shared) -> Limits {
    Limits {
        value: shared.net.limits.value(),
        get_line: shared.config.max_get_line,
    }
}

//! A memcached connection. Consecutive `get`s and plain `mg`s are looked up in groups, and consecutive `set`s are
//! executed in groups; other requests are answered singly. Before one of these, the index nodes for its key and for
//! those of the requests behind it that have arrived are prefetched, up to [`BATCH`] keys.

use super::dispatch::Next;
use super::handler::Handler;
use super::lookups::Lookups;
use super::sets::Sets;
use crate::items::store::BATCH;
use crate::net::clients::Client;
use crate::net::connection::{Answered, Sink};
use crate::ops::shared::{Shared, Worker};
use crate::proto::memcached::parse::{Limits, Parser, Step};
use crate::proto::memcached::request::{Meta, MetaVerb, Request};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// One memcached connection.
pub struct Memcached {
    handler: Handler,
    parser: Parser,
    /// Whether the client may send requests: it has logged in, or the server has no passwords.
    authenticated: bool,
}

impl Memcached {
    pub fn new(worker: Rc<Worker>, client: Arc<Client>) -> Memcached {
        Memcached {
            authenticated: worker.shared.passwords.is_disabled(),
            parser: Parser::new(limits(&worker.shared)),
            handler: Handler::new(worker, client),
        }
    }

    /// Executes all queued `set`s.
    async fn finish_sets(&self, sets: &mut Sets<'_>, sink: &mut Sink<'_>) -> io::Result<()> {
        if !sets.is_empty() {
            self.handler.set_all(sets, sink.now, &mut sink.out);
            sink.send_if_enough().await?;
        }
        Ok(())
    }

    /// Answers all queued lookups.
    async fn finish(&self, lookups: &mut Lookups<'_>, sink: &mut Sink<'_>) -> io::Result<()> {
        while lookups.waiting() > 0 {
            self.handler.look_up(lookups, sink.now, &mut sink.out);
            sink.send_if_enough().await?;
        }
        Ok(())
    }

    /// Answers the queued lookups in full groups of [`BATCH`]; fewer stay queued.
    async fn look_up_if_enough(&self, lookups: &mut Lookups<'_>, sink: &mut Sink<'_>) -> io::Result<()> {
        while lookups.waiting() >= BATCH {
            self.handler.look_up(lookups, sink.now, &mut sink.out);
            sink.send_if_enough().await?;
        }
        Ok(())
    }

    /// Prefetches the index nodes for `request` and for the requests in `input`, which follow it. Returns the number of
    /// bytes of `input` that it has parsed.
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
            self.handler.store().prefetch(&keys[..count]);
            self.handler.shared().access.prefetch(&keys[..count]);
        }
        read
    }

    /// Answers a request singly.
    async fn answer(&self, request: Request<'_>, noreply: bool, sink: &mut Sink<'_>) -> io::Result<Next> {
        let Request::GetAndTouch {
            lifetime,
            ref keys,
            unique,
        } = request
        else {
            let next = self.handler.answer(&request, noreply, sink.now, &mut sink.out);
            sink.send_if_enough().await?;
            return Ok(next);
        };
        let mut end: &[u8] = b"END\r\n";
        for key in keys.clone() {
            let answered = self
                .handler
                .get_and_touch(key, lifetime, unique, sink.now, &mut sink.out);
            if answered.is_err() {
                end = b"";
                break;
            }
            sink.send_if_enough().await?;
        }
        sink.out.extend_from_slice(end);
        self.handler.timed(&request, sink.now);
        Ok(Next::GoOn)
    }

    /// Returns the maximum size of a request in bytes, under the current limits.
    pub fn longest(&self) -> usize {
        limits(self.handler.shared()).longest()
    }

    /// Answers the whole requests at the beginning of `unread`.
    pub async fn answer_all(&mut self, unread: &[u8], sink: &mut Sink<'_>) -> io::Result<Answered> {
        self.parser.set_limits(limits(self.handler.shared()));
        let mut turn = Turn::default();
        let want = loop {
            let (request, noreply) = match self.parser.next(&unread[turn.used..]) {
                Step::More { used, want } => {
                    turn.used += used;
                    break Some(want);
                }
                Step::Request {
                    used,
                    request,
                    noreply,
                } => {
                    turn.used += used;
                    (request, noreply)
                }
            };
            if !self.authenticated && request != Request::Http {
                self.authenticated = self.handler.log_in(&request, &mut sink.out);
                if !self.authenticated {
                    break None;
                }
                continue;
            }
            if self.take(request, noreply, &mut turn, unread, sink).await? == Next::Close {
                break None;
            }
        };
        self.finish(&mut turn.lookups, sink).await?;
        self.finish_sets(&mut turn.sets, sink).await?;
        let used = turn.used;
        Ok(Answered { used, want })
    }

    /// Answers a request, or queues it to be executed in a group.
    async fn take<'b>(
        &self,
        request: Request<'b>,
        noreply: bool,
        turn: &mut Turn<'b>,
        unread: &'b [u8],
        sink: &mut Sink<'_>,
    ) -> io::Result<Next> {
        let Turn {
            lookups,
            sets,
            used,
            prefetched,
        } = turn;
        if sets.is_full() {
            self.finish_sets(sets, sink).await?;
        }
        if sets.take(&request, noreply) {
            self.finish(lookups, sink).await?;
            return Ok(Next::GoOn);
        }
        self.finish_sets(sets, sink).await?;
        match request {
            Request::Get { mut keys, unique } => {
                let mut next = keys.next();
                while let Some(key) = next {
                    next = keys.next();
                    lookups.push(key, unique, next.is_none());
                    self.look_up_if_enough(lookups, sink).await?;
                }
            }
            Request::Meta(Meta {
                verb: MetaVerb::Get,
                key,
                flags,
            }) if flags.only_look() && !flags.binary => {
                lookups.push_meta(key, flags);
                self.look_up_if_enough(lookups, sink).await?;
            }
            request => {
                self.finish(lookups, sink).await?;
                if *used > *prefetched && *used < unread.len() {
                    *prefetched = *used + self.prefetch(&request, &unread[*used..]);
                }
                return self.answer(request, noreply, sink).await;
            }
        }
        Ok(Next::GoOn)
    }
}

/// One turn of a connection: the queued requests, and how far the input is parsed.
#[derive(Default)]
struct Turn<'b> {
    /// Between requests, `lookups` and `sets` are never both non-empty.
    lookups: Lookups<'b>,
    sets: Sets<'b>,
    /// Bytes of the input that have been parsed.
    used: usize,
    /// Bytes of the input for whose requests index nodes have been prefetched.
    prefetched: usize,
}

/// Returns the parser's current size limits.
fn limits(shared: &Shared) -> Limits {
    Limits {
        value: shared.net.limits.value(),
        get_line: shared.config.max_get_line,
    }
}

//! memcached's protocol on a connection: consecutive `get`s are looked up together, all else is answered one by one.

pub mod parse;
mod session;

pub use parse::Verb;

use crate::connection::{Answered, Protocol, Sink};
use crate::shared::Worker;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parse::{Limits, MAX_KEY, Meta, MetaVerb, Parser, Request, Step};
use session::{BATCH, Lookups, Next, Session};
use std::io;
use std::rc::Rc;

/// One memcached connection.
pub struct Memcached {
    session: Session,
    parser: Parser,
    limits: Limits,
    /// Whether the client has said who it is, where it must.
    known: bool,
}

impl Memcached {
    pub fn new(worker: Rc<Worker>) -> Memcached {
        let config = &worker.shared.config;
        let limits = Limits {
            value: config.largest_value(),
            get_line: config.max_get_line,
        };
        Memcached {
            known: worker.shared.passwords.none(),
            session: Session::new(worker),
            parser: Parser::new(limits),
            limits,
        }
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

    async fn answer(&self, request: Request<'_>, noreply: bool, sink: &mut Sink<'_>) -> io::Result<Next> {
        let Request::GetAndTouch {
            lifetime,
            keys,
            unique,
        } = request
        else {
            let next = self.session.answer(&request, noreply, sink.now, &mut sink.out);
            sink.send_if_enough().await?;
            return Ok(next);
        };
        let mut end: &[u8] = b"END\r\n";
        for key in keys {
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
        Ok(Next::GoOn)
    }
}

impl Protocol for Memcached {
    fn longest(&self) -> usize {
        self.limits.longest()
    }

    async fn answer_all(&mut self, unread: &[u8], sink: &mut Sink<'_>) -> io::Result<Answered> {
        let mut lookups = Lookups::default();
        let mut used = 0;
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
            if !self.known {
                self.known = self.session.let_in(&request, &mut sink.out);
                if !self.known {
                    break None;
                }
                continue;
            }
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
                    if self.answer(request, noreply, sink).await? == Next::Close {
                        break None;
                    }
                }
            }
        };
        self.finish(&mut lookups, sink).await?;
        Ok(Answered { used, want })
    }
}

/// The key that stands in base64.
fn base64_key<'k>(key: &[u8], space: &'k mut [u8; MAX_KEY]) -> Option<&'k [u8]> {
    let length = BASE64_STANDARD.decode_slice(key, space).ok()?;
    // The empty key is not a client's.
    space.get(..length).filter(|key| !key.is_empty())
}

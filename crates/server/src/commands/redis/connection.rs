//! A Redis connection. Consecutive `GET`s are looked up together, and consecutive `SET`s without options are carried
//! out together; every other command is answered by itself. Before one of those, the index nodes for its first argument
//! and for that of each command behind it that has arrived are prefetched, up to [`BATCH`] keys.

use super::ahead::Ahead;
use super::context::{Context, is_name};
use super::dispatch;
use super::error::Wrong;
use super::group::{Group, Member};
use super::state::walk::Walk;
use super::state::{Saving, State};
use super::{sets, strings};
use crate::counters::Counter;
use crate::items::store::BATCH;
use crate::net::clients::Client;
use crate::net::connection::{Answered, ENOUGH, Sink};
use crate::ops::shared::Worker;
use crate::proto::redis::args::Args;
use crate::proto::redis::parse::{Limits, Parser, Step};
use crate::proto::redis::reply::Reply;
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// The longest command, in bytes: a value of the largest size fits, with a key.
const LONGEST_COMMAND: usize = 128 << 20;

/// Returns the current bounds on what a connection may ask the parser to hold.
fn limits(worker: &Worker) -> Limits {
    Limits {
        bulk: worker.shared.net.limits.bulk(),
        command: LONGEST_COMMAND,
    }
}

/// One Redis connection.
pub struct Redis {
    worker: Rc<Worker>,
    client: Arc<Client>,
    parser: Parser,
    ahead: Ahead,
    state: State,
}

impl Redis {
    pub fn new(worker: Rc<Worker>, client: Arc<Client>) -> Redis {
        let store = worker.shared.databases.first().clone();
        Redis {
            parser: Parser::new(limits(&worker)),
            ahead: Ahead::default(),
            state: State::new(store, worker.shared.passwords.is_disabled()),
            worker,
            client,
        }
    }

    /// Returns the maximum number of bytes that a command can occupy now.
    pub fn longest(&self) -> usize {
        limits(&self.worker).longest()
    }

    /// Answers the whole commands at the beginning of `unread`.
    pub async fn answer_all(&mut self, unread: &[u8], sink: &mut Sink<'_>) -> io::Result<Answered> {
        self.parser.set_limits(limits(&self.worker));
        let mut group = Group::default();
        let mut used = 0;
        self.ahead.clear();
        let want = loop {
            let input = &unread[used..];
            let (step, ahead) = self.next(input);
            let length = match step {
                Step::Command(length) => length,
                Step::More(want) => break Some(want),
                Step::Wrong(text) => {
                    self.finish(&mut group, sink).await?;
                    self.reply(sink).error(&text);
                    break None;
                }
            };
            if let Some(member) = self.member(input, ahead) {
                if !group.takes(&member) {
                    self.finish(&mut group, sink).await?;
                }
                group.push(&member);
            } else {
                self.finish(&mut group, sink).await?;
                if self.is_plain() && !ahead && length < input.len() {
                    self.prefetch(input, length);
                }
                self.answer(input, ahead, sink).await?;
                if self.state.closing {
                    break None;
                }
            }
            used += length;
        };
        self.finish(&mut group, sink).await?;
        Ok(Answered { used, want })
    }

    /// Parses the next command. Returns also whether it was read ahead, so that `ahead` has its arguments.
    fn next(&mut self, input: &[u8]) -> (Step, bool) {
        let unauthenticated = !self.state.known;
        if unauthenticated {
            // Commands were read ahead with the bounds of a client that has logged in.
            self.ahead.clear();
        }
        match self.ahead.take() {
            Some(length) => (Step::Command(length), true),
            None => (self.parser.next(input, unauthenticated), false),
        }
    }

    /// Returns whether commands are carried out as they arrive: the client may send them, and no `MULTI` queues them.
    fn is_plain(&self) -> bool {
        self.state.known && self.state.queue.is_none()
    }

    /// Returns the command that `input` begins with, if it can join a group.
    fn member<'b>(&self, input: &'b [u8], ahead: bool) -> Option<Member<'b>> {
        if !self.is_plain() {
            return None;
        }
        let args = match ahead {
            true => self.ahead.ranges(),
            false => self.parser.ranges()?,
        };
        let arg = |range: &Range<usize>| input.get(range.clone());
        let (name, key, data) = match args {
            [name, key] => (arg(name)?, arg(key)?, None),
            [name, key, data] => (arg(name)?, arg(key)?, Some(arg(data)?)),
            _ => return None,
        };
        let joins = match (name, data) {
            ([b'g' | b'G', b'e' | b'E', b't' | b'T'], None) => true,
            ([b's' | b'S', b'e' | b'E', b't' | b'T'], Some(_)) => is_name(key),
            _ => false,
        };
        joins.then_some(Member { name, key, data })
    }

    /// Answers the commands of a group.
    async fn finish(&mut self, group: &mut Group<'_>, sink: &mut Sink<'_>) -> io::Result<()> {
        if group.keys.is_empty() {
            return Ok(());
        }
        self.worker.add(Counter::Commands, group.keys.len() as u64);
        let mut left = group.keys.as_slice();
        while !left.is_empty() {
            let replied = match group.data.is_empty() {
                true => self.get_some(group.name, left, sink),
                false => self.set_all(group.name, left, &group.data, sink),
            };
            left = &left[replied..];
            sink.send_if_enough().await?;
        }
        group.clear();
        Ok(())
    }

    /// Answers these `SET`s. Returns their number.
    fn set_all(&mut self, name: &[u8], keys: &[&[u8]], data: &[&[u8]], sink: &mut Sink<'_>) -> usize {
        let _shared = self.worker.shared.databases.shared();
        let mut context = context(&self.worker, &self.client, &mut self.state, sink);
        match context.state.store.tick(context.now) {
            Ok(()) => sets::set_each(&mut context, keys, data),
            Err(error) => {
                let Wrong(text) = error.into();
                keys.iter().for_each(|_| context.reply.error(&text));
            }
        }
        context.timed_together(name, keys, data);
        keys.len()
    }

    /// Answers the first of these `GET`s, until there are enough answers to send. Returns how many it has answered.
    fn get_some(&mut self, name: &[u8], keys: &[&[u8]], sink: &mut Sink<'_>) -> usize {
        let done = {
            let _shared = self.worker.shared.databases.shared();
            let begin = sink.out.len();
            let mut context = context(&self.worker, &self.client, &mut self.state, sink);
            let ticked = context.state.store.tick(context.now);
            let done = ticked
                .map_err(Wrong::from)
                .and_then(|()| strings::mget_each(&mut context, keys, ENOUGH));
            match &done {
                Ok(replied) => context.timed_together(name, &keys[..*replied], &[]),
                Err(_) => context.reply.out.truncate(begin),
            }
            done
        };
        done.unwrap_or_else(|Wrong(text)| {
            let mut reply = self.reply(sink);
            keys.iter().for_each(|_| reply.error(&text));
            keys.len()
        })
    }

    /// Parses commands behind the one that `input` begins with, which has `used` bytes, and prefetches the index nodes
    /// for all of them.
    fn prefetch(&mut self, input: &[u8], used: usize) {
        let mut keys = [&[][..]; BATCH];
        let mut count = 0;
        let mut note = |key| {
            if is_name(key) {
                keys[count] = key;
                count += 1;
            }
        };
        self.parser.arg(1, input).into_iter().for_each(&mut note);
        let scout = Parser::new(limits(&self.worker));
        self.ahead.read(scout, &input[used..], BATCH - 1, note);
        if count > 1 {
            self.state.store.prefetch(&keys[..count]);
        }
    }

    /// Answers the command that `input` begins with, in as many turns as it takes.
    async fn answer(&mut self, input: &[u8], ahead: bool, sink: &mut Sink<'_>) -> io::Result<()> {
        self.take_turn(input, ahead, None, sink);
        while let Some(walk) = self.state.walk.take() {
            sink.wait(tokio::task::yield_now()).await?;
            self.take_turn(input, ahead, Some(walk), sink);
        }
        if let Some(saving) = self.state.saving.take() {
            self.saved(saving, sink).await?;
        }
        sink.send_if_enough().await
    }

    /// Carries out the command that `input` begins with, or continues its walk.
    fn take_turn(&mut self, input: &[u8], ahead: bool, walk: Option<Walk>, sink: &mut Sink<'_>) {
        let args: Args<'_> = match ahead {
            true => self.ahead.args(input),
            false => self.parser.args(input),
        };
        if args.len() == 0 {
            return; // An empty line, or an empty array: no command.
        }
        let mut context = context(&self.worker, &self.client, &mut self.state, sink);
        match walk {
            Some(walk) => dispatch::continue_walk(&mut context, args, walk),
            None => {
                context.add(Counter::Commands, 1);
                dispatch::arrived(&mut context, args);
            }
        }
    }

    /// Waits until a backup has ended, and answers the `SAVE` that has asked for it.
    async fn saved(&self, saving: Saving, sink: &mut Sink<'_>) -> io::Result<()> {
        let made = sink.wait(saving).await?;
        let mut reply = self.reply(sink);
        match made.unwrap_or_else(|_| Err("the backup has ended without a word".into())) {
            Ok(()) => reply.ok(),
            Err(why) => reply.error(format!("ERR {why}")),
        }
        Ok(())
    }

    fn reply<'o>(&self, sink: &'o mut Sink<'_>) -> Reply<'o> {
        Reply {
            out: &mut sink.out,
            resp3: self.state.resp3,
        }
    }
}

/// Returns the context of the next command.
fn context<'c>(
    worker: &'c Worker,
    client: &'c Arc<Client>,
    state: &'c mut State,
    sink: &'c mut Sink<'_>,
) -> Context<'c> {
    let resp3 = state.resp3;
    Context {
        worker,
        client,
        state,
        now: sink.now,
        reply: Reply {
            out: &mut sink.out,
            resp3,
        },
    }
}

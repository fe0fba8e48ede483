//! Redis's protocol on a connection: consecutive `GET`s are looked up together, and consecutive `SET`s without options
//! are carried out together; all else is answered one by one. The memory that other writes will look at is prefetched,
//! for as many of them as have come.

use super::ahead::Ahead;
use super::catalogue::COMMANDS;
use super::context::{self, Context, Saving, State};
use super::parse::{Args, Limits, Parser, Step};
use super::reply::Reply;
use super::state::walk::Walk;
use super::transaction::Watches;
use super::{dispatch, sets, strings};
use crate::counters::Counter;
use crate::items::store::BATCH;
use crate::net::clients::Client;
use crate::net::connection::{Answered, ENOUGH, Sink};
use crate::net::dialect::Dialect;
use crate::ops::shared::Worker;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The Redis whose answers these are. Clients read there what they may ask.
pub const VERSION: &str = "7.0.15";

/// The protocol.
pub static DIALECT: Dialect = Dialect {
    place: 1,
    name: "redis",
    too_many: b"-ERR max number of clients reached\r\n",
    not_durable: |why| {
        let mut out = Vec::new();
        let resp3 = false; // An error is the same in both versions.
        Reply { out: &mut out, resp3 }.error(context::misconf(why));
        out
    },
    command: |number| COMMANDS.get(number).map(|command| command.name),
};

/// Consecutive commands of one kind: `GET`s, of which the keys are kept, or `SET`s, with their data.
#[derive(Default)]
struct Together<'b> {
    /// What the client has called the first.
    name: &'b [u8],
    keys: Vec<&'b [u8]>,
    data: Vec<&'b [u8]>,
}

impl Together<'_> {
    /// Whether a `SET` with this data, or a `GET` (without), belongs to the group.
    fn takes(&self, data: Option<&[u8]>) -> bool {
        self.keys.is_empty() || self.data.is_empty() == data.is_none()
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
        let state = State {
            store: worker.shared.databases.first().clone(),
            db: 0,
            resp3: false,
            known: worker.shared.passwords.none(),
            queue: None,
            watched: Watches::default(),
            closing: false,
            executing: false,
            saving: None,
            walk: None,
            walked: Duration::ZERO,
        };
        Redis {
            parser: Parser::new(limits(&worker)),
            ahead: Ahead::default(),
            worker,
            client,
            state,
        }
    }

    fn context<'c>(
        worker: &'c Worker,
        client: &'c Arc<Client>,
        state: &'c mut State,
        out: &'c mut Vec<u8>,
        now: u64,
    ) -> Context<'c> {
        let resp3 = state.resp3;
        Context {
            worker,
            client,
            state,
            reply: Reply { out, resp3 },
            now,
        }
    }

    /// Answers the commands that wait.
    async fn finish(&mut self, together: &mut Together<'_>, sink: &mut Sink<'_>) -> io::Result<()> {
        let Together { name, keys, data } = together;
        if keys.is_empty() {
            return Ok(());
        }
        self.worker.add(Counter::Commands, keys.len() as u64);
        let mut left = keys.as_slice();
        while !left.is_empty() {
            let replied = match data.is_empty() {
                true => self.get_some(name, left, sink),
                false => self.set_all(name, left, data, sink),
            };
            left = &left[replied..];
            sink.send_if_enough().await?;
        }
        keys.clear();
        data.clear();
        Ok(())
    }

    /// Answers these `SET`s; how many they are.
    fn set_all(&mut self, name: &[u8], keys: &[&[u8]], data: &[&[u8]], sink: &mut Sink<'_>) -> usize {
        let _shared = self.worker.shared.databases.shared();
        let mut context = Self::context(
            &self.worker,
            &self.client,
            &mut self.state,
            &mut sink.out,
            sink.now,
        );
        match context.state.store.tick(sink.now) {
            Ok(()) => sets::set_each(&mut context, keys, data),
            Err(error) => {
                let context::Wrong(text) = error.into();
                keys.iter().for_each(|_| context.reply.error(&text));
            }
        }
        context.timed_together(name, keys, data);
        keys.len()
    }

    /// Answers the first of these `GET`s, until there are enough answers to send; of how many.
    fn get_some(&mut self, name: &[u8], keys: &[&[u8]], sink: &mut Sink<'_>) -> usize {
        let done = {
            let _shared = self.worker.shared.databases.shared();
            let begin = sink.out.len();
            let mut context = Self::context(
                &self.worker,
                &self.client,
                &mut self.state,
                &mut sink.out,
                sink.now,
            );
            let ticked = context.state.store.tick(sink.now);
            let done = ticked
                .map_err(context::Wrong::from)
                .and_then(|()| strings::mget_each(&mut context, keys, ENOUGH));
            match &done {
                Ok(replied) => context.timed_together(name, &keys[..*replied], &[]),
                Err(_) => context.reply.out.truncate(begin),
            }
            done
        };
        done.unwrap_or_else(|context::Wrong(text)| {
            let resp3 = self.state.resp3;
            for _ in keys {
                Reply {
                    out: &mut sink.out,
                    resp3,
                }
                .error(&text);
            }
            keys.len()
        })
    }

    /// Waits for the end of a backup, and answers the `SAVE` that has asked for it.
    async fn saved(&self, saving: Saving, sink: &mut Sink<'_>) -> io::Result<()> {
        let made = sink.wait(saving).await?;
        let mut reply = Reply {
            out: &mut sink.out,
            resp3: self.state.resp3,
        };
        match made.unwrap_or_else(|_| Err("the backup has ended without a word".into())) {
            Ok(()) => reply.ok(),
            Err(why) => reply.error(format!("ERR {why}")),
        }
        Ok(())
    }

    /// Reads commands behind the one that `input` begins with, which has `used` bytes, and prefetches what all
    /// of them will look at.
    fn prefetch(&mut self, input: &[u8], used: usize) {
        let mut keys = [&[][..]; BATCH];
        let mut count = 0;
        let mut note = |key| {
            if context::is_name(key) {
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

    /// Answers the command that `input` begins with, which was read ahead or not; or goes on with its walk.
    fn answer(&mut self, input: &[u8], ahead: bool, walk: Option<Walk>, sink: &mut Sink<'_>) {
        let args: Args<'_> = match ahead {
            true => self.ahead.args(input),
            false => self.parser.args(input),
        };
        if args.len() == 0 {
            return; // An empty line, or an empty array: no command.
        }
        let mut context = Self::context(
            &self.worker,
            &self.client,
            &mut self.state,
            &mut sink.out,
            sink.now,
        );
        match walk {
            Some(walk) => dispatch::walks_on(&mut context, args, walk),
            None => {
                context.add(Counter::Commands, 1);
                dispatch::arrived(&mut context, args);
            }
        }
    }
}

/// The longest command, in bytes: a value of the largest size fits, with a key.
const LONGEST_COMMAND: usize = 128 << 20;

/// What a connection may ask to hold now.
fn limits(worker: &Worker) -> Limits {
    Limits {
        bulk: worker.shared.net.limits.bulk(),
        command: LONGEST_COMMAND,
    }
}

impl Redis {
    /// Maximum number of bytes that a command can occupy now.
    pub fn longest(&self) -> usize {
        limits(&self.worker).longest()
    }

    /// Answers the whole commands at the beginning of `unread`.
    pub async fn answer_all(&mut self, unread: &[u8], sink: &mut Sink<'_>) -> io::Result<Answered> {
        self.parser.set_limits(limits(&self.worker));
        let mut together = Together::default();
        let mut used = 0;
        self.ahead.clear();
        let want = loop {
            let input = &unread[used..];
            let stranger = !self.state.known;
            if stranger {
                // It may send less than what was read.
                self.ahead.clear();
            }
            let (more, ahead) = match self.ahead.take() {
                Some(more) => (more, true),
                None => match self.parser.next(input, stranger) {
                    Step::Command(more) => (more, false),
                    Step::More(want) => break Some(want),
                    Step::Wrong(text) => {
                        self.finish(&mut together, sink).await?;
                        let resp3 = self.state.resp3;
                        Reply {
                            out: &mut sink.out,
                            resp3,
                        }
                        .error(&text);
                        break None;
                    }
                },
            };
            let (count, [name, key, data]) = match ahead {
                true => (
                    self.ahead.args(input).len(),
                    [0, 1, 2].map(|i| self.ahead.arg(i, input)),
                ),
                false => (
                    self.parser.args(input).len(),
                    [0, 1, 2].map(|i| self.parser.arg(i, input)),
                ),
            };
            let plain = !stranger && self.state.queue.is_none();
            let name = name.filter(|_| plain).unwrap_or_default();
            let (key, data) = match count {
                2 if name.eq_ignore_ascii_case(b"get") => (key, None),
                3 if name.eq_ignore_ascii_case(b"set") => (key.filter(|key| context::is_name(key)), data),
                _ => (None, None),
            };
            if let Some(key) = key {
                if together.keys.len() == BATCH || !together.takes(data) {
                    self.finish(&mut together, sink).await?;
                }
                if together.keys.is_empty() {
                    together.name = name;
                }
                together.keys.push(key);
                together.data.extend(data);
            } else {
                self.finish(&mut together, sink).await?;
                if plain && !ahead && more < input.len() {
                    self.prefetch(input, more);
                }
                self.answer(input, ahead, None, sink);
                while let Some(walk) = self.state.walk.take() {
                    sink.wait(tokio::task::yield_now()).await?;
                    self.answer(input, ahead, Some(walk), sink);
                }
                if let Some(saving) = self.state.saving.take() {
                    self.saved(saving, sink).await?;
                }
                sink.send_if_enough().await?;
                if self.state.closing {
                    break None;
                }
            }
            used += more;
        };
        self.finish(&mut together, sink).await?;
        Ok(Answered { used, want })
    }
}

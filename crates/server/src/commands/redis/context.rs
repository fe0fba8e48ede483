//! A command's context: its connection's state, the database, the reply.

use super::reply::Reply;
use super::state::walk::Walk;
use super::transaction::{Queue, Watches};
use crate::counters::Counter;
use crate::items::item::{Header, Item};
use crate::items::store::{Decision, Failure, Store};
use crate::net::clients::Client;
use crate::ops::copying::Outcome;
use crate::ops::rate_limit;
use crate::ops::shared::{Shared, Worker};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// What a connection remembers between two commands.
pub struct State {
    pub store: Arc<Store>,
    pub db: usize,
    /// Whether it speaks RESP3.
    pub resp3: bool,
    /// Whether the client has said who it is, where it must.
    pub known: bool,
    pub queue: Option<Queue>,
    pub watched: Watches,
    pub closing: bool,
    /// Whether an `EXEC` is being carried out.
    pub executing: bool,
    /// The backup that the connection waits for.
    pub saving: Option<Saving>,
    /// The walk of the last command, if it goes on in another turn.
    pub walk: Option<Walk>,
    /// How long it has taken in the turns before.
    pub walked: Duration,
}

/// What comes of a backup, once it has ended.
pub type Saving = oneshot::Receiver<Outcome>;

/// A command at work.
pub struct Context<'c> {
    pub worker: &'c Worker,
    pub client: &'c Arc<Client>,
    pub state: &'c mut State,
    pub reply: Reply<'c>,
    /// The millisecond it is.
    pub now: u64,
}

/// Why a command was refused: the error's text, in which the client's words are as it has sent them.
#[derive(Debug)]
pub struct Wrong(pub Vec<u8>);

impl Wrong {
    /// With a word of the client's, which for Redis ends before a zero byte, in its midst.
    pub fn with(before: &str, word: &[u8], behind: &str) -> Wrong {
        Wrong([before.as_bytes(), as_text(word), behind.as_bytes()].concat())
    }
}

/// The part of a word that Redis shows: it ends before a zero byte.
pub fn as_text(word: &[u8]) -> &[u8] {
    word.split(|&byte| byte == 0).next().unwrap_or_default()
}

impl From<String> for Wrong {
    fn from(text: String) -> Wrong {
        Wrong(text.into_bytes())
    }
}

/// What follows a command whose reply has been written.
pub type Done = Result<(), Wrong>;

impl From<&str> for Wrong {
    fn from(text: &str) -> Wrong {
        Wrong(text.as_bytes().to_vec())
    }
}

impl From<Failure> for Wrong {
    fn from(failure: Failure) -> Wrong {
        rate_limit::failed("redis", &failure);
        if let Failure::NoRoom = failure {
            return "OOM command not allowed when used memory > 'maxmemory'.".into();
        }
        match failure {
            Failure::Index(index::Error::Refused(_) | index::Error::NotDurable(_)) => {
                Wrong::from(misconf(&failure.to_string()))
            }
            _ => Wrong::from(format!("ERR {failure}")),
        }
    }
}

impl From<index::Error> for Wrong {
    fn from(error: index::Error) -> Wrong {
        Failure::from(error).into()
    }
}

impl From<crate::Error> for Wrong {
    fn from(error: crate::Error) -> Wrong {
        Wrong::from(format!("ERR {error}"))
    }
}

/// The error for a change that the log has refused, and for what a failed sync leaves unknown.
pub fn misconf(why: &str) -> String {
    format!("MISCONF Errors writing to the AOF file: {why}")
}

pub const SYNTAX: &str = "ERR syntax error";
pub const NOT_INTEGER: &str = "ERR value is not an integer or out of range";
pub const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
const TOO_MUCH: &str = "ERR the reply would be longer than 64 MiB: ask for less at a time";

/// The longest reply, in bytes, and the shortest that is too long.
const LONGEST_REPLY: usize = 64 << 20;
pub const TOO_LONG_REPLY: usize = LONGEST_REPLY + 1;

impl Context<'_> {
    pub fn shared(&self) -> &Shared {
        &self.worker.shared
    }

    pub fn add(&self, counter: Counter, by: u64) {
        self.worker.add(counter, by);
    }

    /// Reads an item, if it is there.
    pub fn read<T>(&self, key: &[u8], show: impl FnOnce(&Item<'_>) -> T) -> Result<Option<T>, Wrong> {
        if !is_name(key) {
            return Ok(None);
        }
        Ok(self.state.store.read(key, self.now, show)?)
    }

    /// Counts what a read has found.
    pub fn count(&self, found: bool) {
        self.worker.count_get(found);
    }

    /// One edit of an item.
    pub fn change<T>(
        &self,
        key: &[u8],
        rule: impl FnMut(Option<Item<'_>>, u64, &mut Vec<u8>) -> Decision<T>,
    ) -> Result<T, Wrong> {
        let scratch = &mut *self.worker.scratch.borrow_mut();
        let changed = self.state.store.change(key, self.now, scratch, rule);
        // Space for one large value is not kept.
        scratch.shrink_to(64 << 10);
        Ok(changed?)
    }

    /// Stores data without an expiry, whatever is there.
    pub fn put(&self, key: &[u8], data: &[u8]) -> Done {
        self.change(key, |_, unique, put| {
            fresh(unique, 0, &[data], put);
            Decision::Put(())
        })?;
        self.add(Counter::Sets, 1);
        Ok(())
    }

    /// Refuses to go on with a reply that has become too long.
    pub fn bounded(&self, begin: usize) -> Done {
        bounded(self.reply.out.len() - begin)
    }

    /// The longest value.
    pub fn longest(&self) -> usize {
        self.shared().net.limits.bulk()
    }
}

/// Whether an item may have this key: the server's own record is under the empty one, and longer keys than an index
/// takes are never there.
pub fn is_name(key: &[u8]) -> bool {
    !key.is_empty() && key.len() <= index::MAX_KEY
}

/// Refuses a reply of more bytes than the longest has.
pub fn bounded(length: usize) -> Done {
    match length > LONGEST_REPLY {
        true => Err(TOO_MUCH.into()),
        false => Ok(()),
    }
}

/// Fills in the same data with another expiry.
pub fn retimed(unique: u64, expiry: u64, old: &Item<'_>, put: &mut Vec<u8>) {
    let header = Header {
        unique,
        expiry,
        ..old.header
    };
    header.begin(put);
    put.extend_from_slice(old.data);
}

/// Fills in a value of these parts.
pub fn fresh(unique: u64, expiry: u64, parts: &[&[u8]], put: &mut Vec<u8>) {
    let header = Header {
        unique,
        expiry,
        ..Header::default()
    };
    header.begin(put);
    parts.iter().for_each(|part| put.extend_from_slice(part));
}

//! What a client can ask for. Requests borrow their keys and data from the input.

use crate::items::store::classic::Verb;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// The longest key, in bytes.
pub const MAX_KEY: usize = 250;

/// A command that data follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'b> {
    /// `set`.
    Set {
        key: &'b [u8],
        flags: u32,
        lifetime: i64,
    },
    /// `add`, `replace`, `append`, `prepend`, `cas`.
    Classic {
        verb: Verb,
        key: &'b [u8],
        flags: u32,
        lifetime: i64,
    },
    /// `ms`.
    Meta(Meta<'b>),
}

/// A complete request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'b> {
    /// `get`, `gets`.
    Get { keys: Keys<'b>, unique: bool },
    /// `gat`, `gats`.
    GetAndTouch {
        lifetime: i64,
        keys: Keys<'b>,
        unique: bool,
    },
    /// A storage command and its data.
    Store { body: Body<'b>, data: &'b [u8] },
    /// A storage command whose value is too large; its data is skipped.
    TooLarge(Body<'b>),
    /// `delete`.
    Delete { key: &'b [u8] },
    /// `incr`, `decr`.
    Count { key: &'b [u8], delta: u64, up: bool },
    /// `touch`.
    Touch { key: &'b [u8], lifetime: i64 },
    /// `flush_all`.
    FlushAll { delay: i64 },
    /// `mn`.
    MetaNothing,
    /// `mg`, `md`, `ma`.
    Meta(Meta<'b>),
    /// `me`.
    MetaDebug { key: &'b [u8], binary: bool },
    /// `stats`, with its argument.
    Stats { what: &'b [u8] },
    /// `version`.
    Version,
    /// `verbosity`: accepted, and changes nothing.
    Verbosity,
    /// `cache_memlimit`, in bytes.
    MemoryLimit(u64),
    /// `quit`.
    Quit,
    /// A line that is no request, and the answer to it.
    Wrong(&'static str),
    /// A line of HTTP: the bytes behind it are not meant for this protocol.
    Http,
    /// A line that is too long, whether its end has arrived or not. The bytes behind it are not parsed.
    LineTooLong,
}

impl<'b> Request<'b> {
    /// Returns its key as it was sent; of several, the first.
    pub fn key(&self) -> Option<&'b [u8]> {
        match self {
            Request::Get { keys, .. } | Request::GetAndTouch { keys, .. } => keys.clone().next(),
            Request::Store { body, .. } | Request::TooLarge(body) => match body {
                Body::Set { key, .. } | Body::Classic { key, .. } => Some(key),
                Body::Meta(meta) => Some(meta.key),
            },
            Request::Delete { key }
            | Request::Count { key, .. }
            | Request::Touch { key, .. }
            | Request::MetaDebug { key, .. } => Some(key),
            Request::Meta(meta) => Some(meta.key),
            _ => None,
        }
    }
}

/// The words of a line, separated by blanks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys<'b> {
    rest: &'b [u8],
}

impl<'b> Keys<'b> {
    /// Returns the words of a line.
    pub fn of(line: &'b [u8]) -> Keys<'b> {
        Keys { rest: line }
    }
}

impl<'b> Iterator for Keys<'b> {
    type Item = &'b [u8];

    #[inline]
    fn next(&mut self) -> Option<&'b [u8]> {
        let blanks = self.rest.iter().position(|&byte| byte != b' ')?;
        let rest = &self.rest[blanks..];
        // Words are short: a loop over single bytes is faster than a vectorized search.
        let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        Some(word)
    }
}

/// A meta command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVerb {
    /// `mg`.
    Get,
    /// `ms`.
    Set,
    /// `md`.
    Delete,
    /// `ma`.
    Count,
}

/// A meta command on a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta<'b> {
    pub verb: MetaVerb,
    /// As it was sent: in base64 if the flags say so.
    pub key: &'b [u8],
    pub flags: Flags<'b>,
}

/// The flags of a meta command. Every command accepts every flag, also one that it ignores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flags<'b> {
    /// All of them, in order.
    pub words: Keys<'b>,
    /// `b`: the key is in base64.
    pub binary: bool,
    /// `q`: the usual answer is not wanted.
    pub quiet: bool,
    /// `v`: the value is wanted.
    pub value: bool,
    /// `u`: the lookup does not count as an access.
    pub no_bump: bool,
    /// `I`: in an `md`, mark the item as stale; in an `ms` with an older unique in `C`, store the data as stale.
    pub invalidate: bool,
    /// `N`: the lifetime of the item that is created if there is none.
    pub vivify: Option<i64>,
    /// `T`: the new lifetime.
    pub lifetime: Option<i64>,
    /// `R`: if less time than this is left, the client is asked to replace the item.
    pub recache: Option<i64>,
    /// `F`: the client's own flags.
    pub client: u32,
    /// `C`: the unique that the item must have.
    pub unique: Option<u64>,
    /// `M`: the mode, or 0.
    pub mode: u8,
    /// `J`: the number that a created item holds.
    pub initial: u64,
    /// `D`: the step by which to count.
    pub delta: u64,
}

impl<'b> Flags<'b> {
    /// Returns flags with these words, of which none is parsed yet: all values are the defaults.
    pub fn unset(words: Keys<'b>) -> Flags<'b> {
        Flags {
            words,
            binary: false,
            quiet: false,
            value: false,
            no_bump: false,
            invalidate: false,
            vivify: None,
            lifetime: None,
            recache: None,
            client: 0,
            unique: None,
            mode: 0,
            initial: 0,
            delta: 1,
        }
    }

    /// Returns whether an `mg` with these flags only reads, as far as the flags say, and counts as an access.
    pub fn only_look(&self) -> bool {
        !self.no_bump && self.vivify.is_none() && self.lifetime.is_none() && self.recache.is_none()
    }
}

/// Returns the key that an item is stored under, for a key as it was sent: in base64 if it is `binary`.
pub fn stored_key<'k>(key: &'k [u8], binary: bool, space: &'k mut [u8; MAX_KEY]) -> &'k [u8] {
    match binary {
        // The parser has checked that it decodes.
        true => base64_key(key, space).unwrap_or(key),
        false => key,
    }
}

/// Decodes a base64 key into `space`. Returns `None` if it is not base64, is longer than any key, or is empty.
pub fn base64_key<'k>(key: &[u8], space: &'k mut [u8; MAX_KEY]) -> Option<&'k [u8]> {
    let length = BASE64_STANDARD.decode_slice(key, space).ok()?;
    // No client may use the empty key.
    space.get(..length).filter(|key| !key.is_empty())
}

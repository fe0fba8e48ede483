//! The memcached text protocol, classic and meta commands, from bytes to requests.
//!
//! I1 Pure: no input or output, no clock, no allocation. The result depends on the bytes alone, not on how they were
//!    cut into segments on their way here.
//! I2 No input makes it panic, and it never asks to hold more than [`Limits::longest`] bytes at once: the body of a
//!    value that is too large is skipped as it arrives.
//! I3 Where a line is wrong, the answer and what is skipped are memcached's (1.6): the body of a storage command whose
//!    line is wrong is read as commands.
//!
//! Not here: what a line says (`line`, `meta`), what the requests do (`session`), where the bytes come from
//! (`connection`).

mod line;
mod meta;

use crate::items::store::classic::Verb;
use line::{BAD_CHUNK, Line};
pub use meta::{Flags, Meta, MetaVerb};

/// The longest key, in bytes.
pub const MAX_KEY: usize = 250;

/// The longest line that is not a `get` or `gets`, in bytes.
const MAX_LINE: usize = 2048;

/// What a connection may ask the parser to hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest value, in bytes.
    pub value: usize,
    /// The longest `get` or `gets` line, in bytes.
    pub get_line: usize,
}

impl Limits {
    /// Maximum number of bytes a request can occupy.
    pub fn longest(&self) -> usize {
        (MAX_LINE + self.value + 4).max(self.get_line + 2)
    }
}

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
    /// A line that is not a request; the answer to it.
    Wrong(&'static str),
    /// A line of HTTP: nothing behind it is meant for this protocol.
    Http,
    /// A line without an end: nothing behind it can be understood.
    LineTooLong,
}

impl<'b> Request<'b> {
    /// The key it is about, as it stands there; of several, the first.
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

/// The parser's result for the bytes so far.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'b> {
    /// Drop the first `used` bytes, and come back with at least `want` bytes.
    More { used: usize, want: usize },
    /// A request that took the first `used` bytes.
    Request {
        used: usize,
        request: Request<'b>,
        noreply: bool,
    },
}

/// The parser of one connection: what it must remember between two calls.
#[derive(Clone, Debug)]
pub struct Parser {
    limits: Limits,
    /// Bytes of a refused body still to come.
    skip: u64,
    /// Bytes of an unfinished line in which there is no line end.
    searched: usize,
}

impl Parser {
    /// The parser of a new connection.
    pub fn new(limits: Limits) -> Parser {
        Parser {
            limits,
            skip: 0,
            searched: 0,
        }
    }

    /// Holds what is read from now on to these limits.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The next request in `input`, which begins where the last step's `used` ended.
    pub fn next<'b>(&mut self, input: &'b [u8]) -> Step<'b> {
        let mut skipped = 0;
        if self.skip > 0 {
            skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(input.len());
            self.skip -= skipped as u64;
            if self.skip > 0 {
                return Step::More {
                    used: skipped,
                    want: 1,
                };
            }
        }
        let input = &input[skipped..];
        match self.line(input) {
            Step::More { used, want } => Step::More {
                used: skipped + used,
                want,
            },
            Step::Request {
                used,
                request,
                noreply,
            } => Step::Request {
                used: skipped + used,
                request,
                noreply,
            },
        }
    }

    fn line<'b>(&mut self, input: &'b [u8]) -> Step<'b> {
        let from = self.searched.min(input.len());
        let found = memchr::memchr(b'\n', &input[from..]).map(|at| from + at);
        let length = found.unwrap_or(input.len());
        if length > MAX_LINE && (length > self.limits.get_line || !is_get(input)) {
            return Step::Request {
                used: input.len(),
                request: Request::LineTooLong,
                noreply: false,
            };
        }
        let Some(end) = found else {
            self.searched = input.len();
            return Step::More {
                used: 0,
                want: input.len() + 1,
            };
        };
        let used = end + 1;
        let line = &input[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let parsed = line::parse(line);
        let noreply = parsed.noreply;
        self.searched = 0;
        let (body, length) = match parsed.line {
            Line::Whole(request) => {
                return Step::Request {
                    used,
                    request,
                    noreply,
                };
            }
            Line::Refused { why, length } => {
                self.skip = length + 2;
                return Step::Request {
                    used,
                    request: Request::Wrong(why),
                    noreply,
                };
            }
            Line::Body { body, length } => (body, length),
        };
        let held = match usize::try_from(length) {
            Ok(held) if held <= self.limits.value => held,
            _ => {
                self.skip = length + 2;
                return Step::Request {
                    used,
                    request: Request::TooLarge(body),
                    noreply,
                };
            }
        };
        let whole = used + held + 2;
        if input.len() < whole {
            // The search need not begin anew, and ends at once.
            self.searched = end;
            return Step::More { used: 0, want: whole };
        }
        let request = if input[used + held..whole] == *b"\r\n" {
            Request::Store {
                body,
                data: &input[used..used + held],
            }
        } else {
            Request::Wrong(BAD_CHUNK)
        };
        Step::Request {
            used: whole,
            request,
            noreply,
        }
    }
}

/// Whether the line is a `get` or `gets`, which alone may be long.
fn is_get(input: &[u8]) -> bool {
    let blanks = input.iter().take_while(|&&byte| byte == b' ').count();
    let rest = &input[blanks..];
    blanks <= 100 && (rest.starts_with(b"get ") || rest.starts_with(b"gets "))
}

/// The words of a line, which blanks part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys<'b> {
    rest: &'b [u8],
}

impl<'b> Iterator for Keys<'b> {
    type Item = &'b [u8];

    #[inline]
    fn next(&mut self) -> Option<&'b [u8]> {
        let blanks = self.rest.iter().position(|&byte| byte != b' ')?;
        let rest = &self.rest[blanks..];
        // Words are short: looking at each byte is faster than what looks at many at once.
        let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        Some(word)
    }
}

#[cfg(test)]
mod tests;

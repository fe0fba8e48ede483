//! The memcached classic text protocol, from bytes to requests.
//!
//! I1 Pure: no input or output, no clock, no allocation. What comes out depends on the bytes alone, not on how they
//!    were cut into pieces on their way here.
//! I2 No input makes it panic, and it never asks to hold more than [`Limits::longest`] bytes at once: the body of a
//!    value that is too large is skipped as it arrives.
//! I3 Where a line is wrong, the answer and what is skipped are memcached's (1.6): the body of a storage command whose
//!    line is wrong is read as commands.
//!
//! Not here: what the requests do (`session`), where the bytes come from (`connection`).

use crate::number;

/// The longest key, in bytes.
pub const MAX_KEY: usize = 250;

/// The longest line that is not a `get` or `gets`, in bytes.
const MAX_LINE: usize = 2048;

/// The largest length a storage command may announce: memcached counts in `int`, with the final `\r\n` added.
const MAX_LENGTH: u64 = i32::MAX as u64 - 2;

/// What a connection may ask the parser to hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest value, in bytes.
    pub value: usize,
    /// The longest `get` or `gets` line, in bytes.
    pub get_line: usize,
}

impl Limits {
    /// The most bytes a request can occupy.
    pub fn longest(&self) -> usize {
        (MAX_LINE + self.value + 4).max(self.get_line + 2)
    }
}

/// The storage commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Store in any case.
    Set,
    /// Store if absent.
    Add,
    /// Store if present.
    Replace,
    /// Add bytes behind the present value.
    Append,
    /// Add bytes before the present value.
    Prepend,
    /// Store if the value is still the one with this unique.
    Cas(u64),
}

/// A complete request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'b> {
    /// `get`, `gets`.
    Get { keys: Keys<'b>, unique: bool },
    /// `gat`, `gats`.
    GetAndTouch { lifetime: i64, keys: Keys<'b>, unique: bool },
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`.
    Store { verb: Verb, key: &'b [u8], flags: u32, lifetime: i64, data: &'b [u8] },
    /// A storage command whose value is too large; its body is skipped.
    TooLarge { verb: Verb, key: &'b [u8] },
    /// `delete`.
    Delete { key: &'b [u8] },
    /// `incr`, `decr`.
    Count { key: &'b [u8], delta: u64, up: bool },
    /// `touch`.
    Touch { key: &'b [u8], lifetime: i64 },
    /// `flush_all`.
    FlushAll { delay: i64 },
    /// `stats`, with its argument.
    Stats { what: &'b [u8] },
    /// `version`.
    Version,
    /// `verbosity`: accepted, and changes nothing.
    Verbosity,
    /// `quit`.
    Quit,
    /// A line that is not a request; the answer to it.
    Wrong(&'static str),
    /// A line without an end: nothing behind it can be understood.
    LineTooLong,
}

/// What the parser makes of the bytes it is shown.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'b> {
    /// Drop the first `used` bytes, and come back with at least `want` bytes.
    More { used: usize, want: usize },
    /// A request that took the first `used` bytes.
    Request { used: usize, request: Request<'b>, noreply: bool },
}

/// The parser of one connection: what it must remember between two calls.
#[derive(Debug)]
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
        Parser { limits, skip: 0, searched: 0 }
    }

    /// The next request in `input`, which begins where the last step's `used` ended.
    pub fn next<'b>(&mut self, input: &'b [u8]) -> Step<'b> {
        let mut skipped = 0;
        if self.skip > 0 {
            skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(input.len());
            self.skip -= skipped as u64;
            if self.skip > 0 {
                return Step::More { used: skipped, want: 1 };
            }
        }
        let input = &input[skipped..];
        match self.line(input) {
            Step::More { used, want } => Step::More { used: skipped + used, want },
            Step::Request { used, request, noreply } => {
                Step::Request { used: skipped + used, request, noreply }
            }
        }
    }

    fn line<'b>(&mut self, input: &'b [u8]) -> Step<'b> {
        let from = self.searched.min(input.len());
        let found = memchr::memchr(b'\n', &input[from..]).map(|at| from + at);
        let length = found.unwrap_or(input.len());
        if length > MAX_LINE && (length > self.limits.get_line || !is_get(input)) {
            return Step::Request { used: input.len(), request: Request::LineTooLong, noreply: false };
        }
        let Some(end) = found else {
            self.searched = input.len();
            return Step::More { used: 0, want: input.len() + 1 };
        };
        let used = end + 1;
        let line = &input[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let parsed = parse(line);
        let noreply = parsed.noreply;
        let (verb, key, flags, lifetime, length) = match parsed.line {
            Line::Whole(request) => {
                self.searched = 0;
                return Step::Request { used, request, noreply };
            }
            Line::Store { verb, key, flags, lifetime, length } => (verb, key, flags, lifetime, length),
        };
        let body = match usize::try_from(length) {
            Ok(body) if body <= self.limits.value => body,
            _ => {
                self.skip = length + 2;
                self.searched = 0;
                return Step::Request { used, request: Request::TooLarge { verb, key }, noreply };
            }
        };
        let whole = used + body + 2;
        if input.len() < whole {
            // The search need not begin anew, and ends at once.
            self.searched = end;
            return Step::More { used: 0, want: whole };
        }
        self.searched = 0;
        let request = if input[used + body..whole] == *b"\r\n" {
            Request::Store { verb, key, flags, lifetime, data: &input[used..used + body] }
        } else {
            Request::Wrong(BAD_CHUNK)
        };
        Step::Request { used: whole, request, noreply }
    }
}

/// Whether the line is a `get` or `gets`, which alone may be long.
fn is_get(input: &[u8]) -> bool {
    let blanks = input.iter().take_while(|&&byte| byte == b' ').count();
    let rest = &input[blanks..];
    blanks <= 100 && (rest.starts_with(b"get ") || rest.starts_with(b"gets "))
}

const ERROR: &str = "ERROR\r\n";
const BAD_CHUNK: &str = "CLIENT_ERROR bad data chunk\r\n";
const BAD_LINE: &str = "CLIENT_ERROR bad command line format\r\n";
const BAD_DELETE: &str = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
const BAD_DELTA: &str = "CLIENT_ERROR invalid numeric delta argument\r\n";
const BAD_LIFETIME: &str = "CLIENT_ERROR invalid exptime argument\r\n";

/// A command line, and whether its answer is wanted.
struct Parsed<'b> {
    line: Line<'b>,
    noreply: bool,
}

enum Line<'b> {
    Whole(Request<'b>),
    Store { verb: Verb, key: &'b [u8], flags: u32, lifetime: i64, length: u64 },
}

/// The first words of a line: as many as the longest command has, and one more to tell when there are too many.
struct Words<'b> {
    words: [&'b [u8]; Words::MOST],
    count: usize,
}

impl<'b> Words<'b> {
    const MOST: usize = 8;

    fn of(line: &'b [u8]) -> Words<'b> {
        let mut all = Words { words: [&[]; Words::MOST], count: 0 };
        for (slot, word) in all.words.iter_mut().zip(Keys { rest: line }) {
            *slot = word;
            all.count += 1;
        }
        all
    }

    fn last_is_noreply(&self) -> bool {
        self.count > 0 && self.words[self.count - 1] == b"noreply"
    }
}

fn parse(line: &[u8]) -> Parsed<'_> {
    let mut rest = Keys { rest: line };
    let command = rest.next().unwrap_or_default();
    let wrong = |answer| Parsed { line: Line::Whole(Request::Wrong(answer)), noreply: false };
    match command {
        b"get" | b"gets" => get(rest, command == b"gets"),
        b"gat" | b"gats" => get_and_touch(rest, command == b"gats"),
        b"set" => store(Verb::Set, line, 5..=6),
        b"add" => store(Verb::Add, line, 5..=6),
        b"replace" => store(Verb::Replace, line, 5..=6),
        b"append" => store(Verb::Append, line, 5..=6),
        b"prepend" => store(Verb::Prepend, line, 5..=6),
        b"cas" => store(Verb::Cas(0), line, 6..=7),
        b"delete" => short(line, 2..=4, delete),
        b"incr" => short(line, 3..=4, |words| count(words, true)),
        b"decr" => short(line, 3..=4, |words| count(words, false)),
        b"touch" => short(line, 3..=4, touch),
        b"flush_all" => short(line, 1..=3, flush_all),
        b"verbosity" => short(line, 2..=3, verbosity),
        b"stats" => whole(Request::Stats { what: rest.next().unwrap_or_default() }),
        b"version" => whole(Request::Version),
        b"quit" => whole(Request::Quit),
        _ => wrong(ERROR),
    }
}

fn whole(request: Request<'_>) -> Parsed<'_> {
    Parsed { line: Line::Whole(request), noreply: false }
}

fn get(keys: Keys<'_>, unique: bool) -> Parsed<'_> {
    if keys.clone().next().is_none() {
        return whole(Request::Wrong(ERROR));
    }
    if keys.clone().any(|key| key.len() > MAX_KEY) {
        return whole(Request::Wrong(BAD_LINE));
    }
    whole(Request::Get { keys, unique })
}

fn get_and_touch(mut rest: Keys<'_>, unique: bool) -> Parsed<'_> {
    let Some(lifetime) = rest.next() else {
        return whole(Request::Wrong(ERROR));
    };
    let Some(lifetime) = number::signed(lifetime) else {
        return whole(Request::Wrong(BAD_LIFETIME));
    };
    if rest.clone().any(|key| key.len() > MAX_KEY) {
        return whole(Request::Wrong(BAD_LINE));
    }
    whole(Request::GetAndTouch { lifetime, keys: rest, unique })
}

fn store(verb: Verb, line: &[u8], words: std::ops::RangeInclusive<usize>) -> Parsed<'_> {
    let all = Words::of(line);
    if !words.contains(&all.count) {
        return whole(Request::Wrong(ERROR));
    }
    let [_, key, flags, lifetime, length, unique, ..] = all.words;
    let store = || {
        let verb = match verb {
            Verb::Cas(_) => Verb::Cas(number::unsigned(unique)?),
            other => other,
        };
        Some(Line::Store {
            verb,
            key: Some(key).filter(|key| key.len() <= MAX_KEY)?,
            flags: u32::try_from(number::unsigned(flags)?).ok()?,
            lifetime: number::signed(lifetime)?,
            length: number::unsigned(length).filter(|&length| length <= MAX_LENGTH)?,
        })
    };
    Parsed {
        line: store().unwrap_or(Line::Whole(Request::Wrong(BAD_LINE))),
        noreply: all.last_is_noreply(),
    }
}

/// A command that is one line of few words.
fn short<'b>(
    line: &'b [u8],
    words: std::ops::RangeInclusive<usize>,
    parse: impl FnOnce(&Words<'b>) -> Request<'b>,
) -> Parsed<'b> {
    let all = Words::of(line);
    if !words.contains(&all.count) {
        return whole(Request::Wrong(ERROR));
    }
    Parsed { line: Line::Whole(parse(&all)), noreply: all.last_is_noreply() }
}

fn delete<'b>(all: &Words<'b>) -> Request<'b> {
    let [_, key, third, ..] = all.words;
    let held = third == b"0"; // What is left of a time that deletes once took.
    match all.count {
        3 if !held && !all.last_is_noreply() => Request::Wrong(BAD_DELETE),
        4 if !held || !all.last_is_noreply() => Request::Wrong(BAD_DELETE),
        _ if key.len() > MAX_KEY => Request::Wrong(BAD_LINE),
        _ => Request::Delete { key },
    }
}

fn count<'b>(all: &Words<'b>, up: bool) -> Request<'b> {
    let [_, key, delta, ..] = all.words;
    if key.len() > MAX_KEY {
        return Request::Wrong(BAD_LINE);
    }
    match number::unsigned(delta) {
        Some(delta) => Request::Count { key, delta, up },
        None => Request::Wrong(BAD_DELTA),
    }
}

fn touch<'b>(all: &Words<'b>) -> Request<'b> {
    let [_, key, lifetime, ..] = all.words;
    if key.len() > MAX_KEY {
        return Request::Wrong(BAD_LINE);
    }
    match number::signed(lifetime) {
        Some(lifetime) => Request::Touch { key, lifetime },
        None => Request::Wrong(BAD_LIFETIME),
    }
}

fn flush_all<'b>(all: &Words<'b>) -> Request<'b> {
    if all.count - usize::from(all.last_is_noreply()) == 1 {
        return Request::FlushAll { delay: 0 };
    }
    match number::signed(all.words[1]) {
        Some(delay) => Request::FlushAll { delay },
        None => Request::Wrong(BAD_LIFETIME),
    }
}

fn verbosity<'b>(all: &Words<'b>) -> Request<'b> {
    if all.last_is_noreply() || number::unsigned(all.words[1]).is_some() {
        Request::Verbosity
    } else {
        Request::Wrong(BAD_LINE)
    }
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
        let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        Some(word)
    }
}

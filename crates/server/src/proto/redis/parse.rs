//! Redis's protocol, from bytes to commands: arrays of bulk strings, and inline commands.
//!
//! I1 Pure: what comes out depends on the bytes alone, not on how they were cut into pieces on their way here.
//! I2 No input makes it panic, and it never asks to hold more than [`Limits::longest`] bytes at once.
//! I3 Where the input is wrong, the answer is Redis's, and the connection ends.

use crate::items::number;
use std::ops::Range;

/// What a connection may ask the parser to hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest argument, in bytes.
    pub bulk: usize,
    /// The longest command, in bytes, with [`ARG`] bytes more for each argument.
    pub command: usize,
}

impl Limits {
    /// Maximum number of bytes that a command can occupy.
    pub fn longest(&self) -> usize {
        self.command + MAX_LINE
    }
}

/// The longest inline command, and the longest line that tells a length.
const MAX_LINE: usize = 64 << 10;
/// Maximum number of arguments that a command may announce, as in Redis, and those of a client that has not said who it
/// is.
const MAX_ARGS: i64 = i32::MAX as i64;
const MAX_STRANGERS_ARGS: u64 = 10;
const MAX_STRANGERS_BULK: usize = 16 << 10;

/// What the place of an argument takes, in bytes.
const ARG: usize = size_of::<Range<usize>>();

/// The parser's result for the bytes so far.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Come back with at least this many bytes.
    More(usize),
    /// A command that took this many of the first bytes; its arguments are [`Parser::args`].
    Command(usize),
    /// Nothing behind this can be understood; the answer.
    Wrong(Vec<u8>),
}

/// The parser of one connection: what it must remember between two calls.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    /// The arguments read so far, in the input or in `inline`.
    args: Vec<Range<usize>>,
    /// Arguments still to come; `None`: between two commands.
    left: Option<u64>,
    /// The length of the argument that comes next, if its line has been read.
    bulk: Option<usize>,
    /// Bytes of the command that need not be read again.
    at: usize,
    /// Bytes behind `at` in which there is no line end.
    searched: usize,
    /// The arguments of an inline command, without their quotes.
    inline: Vec<u8>,
    is_inline: bool,
}

/// The arguments of a command; the first is its name.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    bytes: &'a [u8],
    ranges: &'a [Range<usize>],
}

impl<'a> Args<'a> {
    /// The arguments that stand in these places.
    pub fn new(bytes: &'a [u8], ranges: &'a [Range<usize>]) -> Args<'a> {
        Args { bytes, ranges }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// One of them; empty where there are not that many.
    pub fn get(&self, i: usize) -> &'a [u8] {
        let bytes = self.bytes;
        self.ranges.get(i).map_or(&[], |range| &bytes[range.clone()])
    }

    /// Those from the `i`th on, as a command.
    pub fn behind(&self, i: usize) -> Args<'a> {
        Args {
            bytes: self.bytes,
            ranges: self.ranges.get(i..).unwrap_or_default(),
        }
    }

    /// Those from the `i`th on.
    pub fn from(&self, i: usize) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let bytes = self.bytes;
        let ranges: &'a [Range<usize>] = self.ranges.get(i..).unwrap_or_default();
        ranges.iter().map(move |range| &bytes[range.clone()])
    }
}

/// A command that is kept for later.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    bytes: Vec<u8>,
    ranges: Vec<Range<usize>>,
}

impl Kept {
    /// Keeps a command.
    pub fn new(args: Args<'_>) -> Kept {
        let mut kept = Kept::default();
        for arg in args.from(0) {
            let begin = kept.bytes.len();
            kept.bytes.extend_from_slice(arg);
            kept.ranges.push(begin..kept.bytes.len());
        }
        kept
    }

    /// The command.
    pub fn args(&self) -> Args<'_> {
        Args {
            bytes: &self.bytes,
            ranges: &self.ranges,
        }
    }

    /// About how much memory it takes, in bytes.
    pub fn size(&self) -> usize {
        128 + self.bytes.len() + self.ranges.len() * size_of::<Range<usize>>()
    }
}

impl Parser {
    /// The parser of a new connection.
    pub fn new(limits: Limits) -> Parser {
        Parser {
            limits,
            args: Vec::new(),
            left: None,
            bulk: None,
            at: 0,
            searched: 0,
            inline: Vec::new(),
            is_inline: false,
        }
    }

    /// Holds what is read from now on to these limits.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The arguments of the command that was read last from this input. An inline command's arguments are not in the
    /// input.
    pub fn args<'a>(&'a self, input: &'a [u8]) -> Args<'a> {
        Args {
            bytes: if self.is_inline { &self.inline } else { input },
            ranges: &self.args,
        }
    }

    /// Where in the input the arguments of the last command are, unless it was inline.
    pub fn ranges(&self) -> Option<&[Range<usize>]> {
        (!self.is_inline).then_some(&self.args)
    }

    /// One of these arguments, of a command that is not inline.
    pub fn arg<'b>(&self, i: usize, input: &'b [u8]) -> Option<&'b [u8]> {
        input.get(self.ranges()?.get(i)?.clone())
    }

    /// The next command in `input`, which begins where the last one ended. A client that has not said who it is,
    /// though it must, may send less.
    pub fn next(&mut self, input: &[u8], stranger: bool) -> Step {
        match self.step(input, stranger) {
            Ok(used) => {
                self.left = None;
                self.at = 0;
                self.searched = 0;
                Step::Command(used)
            }
            Err(step) => step,
        }
    }

    fn step(&mut self, input: &[u8], stranger: bool) -> Result<usize, Step> {
        if self.left.is_none() {
            self.args.clear();
            // Space for one command of many arguments is not kept.
            self.args.shrink_to(1024);
            match input.first() {
                None => return Err(Step::More(1)),
                Some(b'*') => {}
                Some(_) => return self.inline(input),
            }
            let count = match self.short_length(input, b'*') {
                Some(count) => Some(count as i64),
                None => number::strict(&self.line(input, "too big mbulk count string")?[1..]),
            };
            let Some(count) = count.filter(|&count| count <= MAX_ARGS) else {
                return Err(wrong("invalid multibulk length"));
            };
            let count = count.max(0) as u64;
            if stranger && count > MAX_STRANGERS_ARGS {
                return Err(wrong("unauthenticated multibulk length"));
            }
            self.is_inline = false;
            self.left = Some(count);
        }
        while self.left.is_some_and(|left| left > 0) {
            let length = match self.bulk {
                Some(length) => length,
                None => self.bulk_length(input, stranger)?,
            };
            let whole = self.at + length + 2;
            if whole + self.args.len() * ARG > self.limits.command {
                return Err(wrong("command too long"));
            }
            if input.len() < whole {
                return Err(Step::More(whole));
            }
            self.args.push(self.at..self.at + length);
            self.at = whole;
            self.bulk = None;
            self.left = self.left.map(|left| left - 1);
        }
        Ok(self.at)
    }

    fn bulk_length(&mut self, input: &[u8], stranger: bool) -> Result<usize, Step> {
        let length = match self.short_length(input, b'$') {
            Some(length) => Some(length),
            None => {
                let line = self.line(input, "too big bulk count string")?;
                let Some(length) = line.strip_prefix(b"$") else {
                    let got = line.first().copied().unwrap_or(b'\r');
                    return Err(wrong([b"expected '$', got '", &[got][..], b"'"].concat()));
                };
                number::strict(length).and_then(|length| usize::try_from(length).ok())
            }
        };
        let Some(length) = length.filter(|&length| length <= self.limits.bulk) else {
            return Err(wrong("invalid bulk length"));
        };
        if stranger && length > MAX_STRANGERS_BULK {
            return Err(wrong("unauthenticated bulk length"));
        }
        self.bulk = Some(length);
        Ok(length)
    }

    /// The number on the line at `at`, behind which `at` then is, where that is a whole line as nearly all are: the
    /// mark and up to four digits. Else nothing has happened.
    #[inline]
    fn short_length(&mut self, input: &[u8], mark: u8) -> Option<usize> {
        let [first, line @ ..] = input.get(self.at..)? else {
            return None;
        };
        let mut length = 0;
        for (i, &byte) in line.iter().take(5).enumerate() {
            let digit = usize::from(byte.wrapping_sub(b'0'));
            if digit < 10 {
                length = length * 10 + digit;
                continue;
            }
            // As everywhere, what is behind the return is taken for a line feed.
            let whole = *first == mark && byte == b'\r' && i + 1 < line.len();
            let strict = i == 1 || (i > 1 && line[0] != b'0');
            if whole && strict {
                self.at += i + 3;
                self.searched = 0;
                return Some(length);
            }
            break;
        }
        None
    }

    /// The line at `at`, without its end, behind which `at` then is.
    fn line<'b>(&mut self, input: &'b [u8], too_long: &str) -> Result<&'b [u8], Step> {
        let rest = input.get(self.at..).unwrap_or_default();
        let from = self.searched.min(rest.len());
        match end_of_line(b'\r', rest, from) {
            // The byte behind is taken for a line feed, as Redis takes it.
            Ok(end) if end + 1 < rest.len() => {
                self.at += end + 2;
                self.searched = 0;
                Ok(&rest[..end])
            }
            Err(_) if rest.len() > MAX_LINE => Err(wrong(too_long)),
            Ok(searched) | Err(searched) => {
                self.searched = searched;
                Err(Step::More(input.len() + 1))
            }
        }
    }

    fn inline(&mut self, input: &[u8]) -> Result<usize, Step> {
        let from = self.searched.min(input.len());
        let end = match end_of_line(b'\n', input, from) {
            Ok(end) => end,
            Err(_) if input.len() > MAX_LINE => return Err(wrong("too big inline request")),
            Err(searched) => {
                self.searched = searched;
                return Err(Step::More(input.len() + 1));
            }
        };
        let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        self.is_inline = true;
        self.inline.clear();
        if super::inline::split(line, &mut self.inline, &mut self.args).is_none() {
            return Err(wrong("unbalanced quotes in request"));
        }
        Ok(end + 1)
    }
}

/// Where a line ends; or up to where there is no end. As in Redis, a line with a zero byte never ends.
fn end_of_line(end: u8, bytes: &[u8], from: usize) -> Result<usize, usize> {
    match memchr::memchr2(end, 0, &bytes[from..]).map(|found| from + found) {
        Some(found) if bytes[found] == end => Ok(found),
        zero => Err(zero.unwrap_or(bytes.len())),
    }
}

fn wrong(what: impl AsRef<[u8]>) -> Step {
    Step::Wrong([b"ERR Protocol error: ", what.as_ref()].concat())
}

#[cfg(test)]
mod tests;

//! Redis's protocol, from bytes to commands: arrays of bulk strings, and inline commands.
//!
//! I1 Pure: the result depends on the bytes and the limits alone, not on how the network has cut the bytes into pieces.
//! I2 No input makes the parser panic, and it never asks to hold more than [`Limits::longest`] bytes at once.
//! I3 If the input is wrong, the answer is Redis's (but for a command beyond [`Limits::command`]), and the connection
//!    ends.

use super::args::Args;
use super::inline;
use crate::items::number;
use std::ops::Range;

/// Bounds on the bytes that the parser asks its connection to hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest argument, in bytes.
    pub bulk: usize,
    /// The longest command, in bytes, with [`ARG`] bytes more for each argument.
    pub command: usize,
}

impl Limits {
    /// Returns the maximum number of bytes that a command can occupy.
    pub fn longest(&self) -> usize {
        self.command + MAX_LINE
    }
}

/// The longest inline command, and the longest line with a length, in bytes.
const MAX_LINE: usize = 64 << 10;
/// Maximum number of digits of a usual length.
const MAX_SHORT: usize = 4;
/// Maximum number of arguments in a command, as in Redis, then the bounds for a client that has not logged in where it
/// must.
const MAX_ARGS: i64 = i32::MAX as i64;
const MAX_UNAUTHENTICATED_ARGS: u64 = 10;
const MAX_UNAUTHENTICATED_BULK: usize = 16 << 10;

/// Bytes of memory per argument, besides its own.
const ARG: usize = size_of::<Range<usize>>();

/// The parser's result for the bytes so far.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// The parser needs at least this many bytes of input, those that it has been given included.
    More(usize),
    /// The first bytes, this many, are a command; [`Parser::args`] has its arguments.
    Command(usize),
    /// The input is wrong and cannot be parsed any further; this is the answer.
    Wrong(Vec<u8>),
}

/// The parser of one connection: what it remembers between two calls.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    /// The arguments read so far, in the input or in `inline`.
    args: Vec<Range<usize>>,
    /// Arguments that have not arrived yet; `None` between two commands.
    left: Option<u64>,
    /// The length of the next argument, once its line has been parsed.
    bulk: Option<usize>,
    /// Bytes of the command that are parsed already.
    at: usize,
    /// Bytes behind `at` in which there is no line end.
    searched: usize,
    /// The arguments of an inline command, without their quotes.
    inline: Vec<u8>,
    is_inline: bool,
}

impl Parser {
    /// Creates the parser of a new connection.
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

    /// Applies these limits to all commands from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Returns the arguments of the last command, which was parsed from this input. Those of an inline command are not
    /// in the input.
    pub fn args<'a>(&'a self, input: &'a [u8]) -> Args<'a> {
        let bytes: &[u8] = if self.is_inline { &self.inline } else { input };
        Args::new(bytes, &self.args)
    }

    /// Returns the places of the last command's arguments in the input; `None` if the command was inline.
    pub fn ranges(&self) -> Option<&[Range<usize>]> {
        (!self.is_inline).then_some(&self.args)
    }

    /// Returns one argument of the last command; `None` if the command was inline.
    pub fn arg<'b>(&self, i: usize, input: &'b [u8]) -> Option<&'b [u8]> {
        input.get(self.ranges()?.get(i)?.clone())
    }

    /// Parses the next command in `input`, which begins where the last one ended. A client that has not logged in where
    /// it must is `unauthenticated`, and may send less.
    pub fn next(&mut self, input: &[u8], unauthenticated: bool) -> Step {
        match self.step(input, unauthenticated) {
            Ok(used) => {
                self.left = None;
                self.at = 0;
                self.searched = 0;
                Step::Command(used)
            }
            Err(step) => step,
        }
    }

    fn step(&mut self, input: &[u8], unauthenticated: bool) -> Result<usize, Step> {
        if self.left.is_none() {
            self.args.clear();
            // The space for a command of many arguments is freed.
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
            if unauthenticated && count > MAX_UNAUTHENTICATED_ARGS {
                return Err(wrong("unauthenticated multibulk length"));
            }
            self.is_inline = false;
            self.left = Some(count);
        }
        while self.left.is_some_and(|left| left > 0) {
            let length = match self.bulk {
                Some(length) => length,
                None => self.bulk_length(input, unauthenticated)?,
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

    fn bulk_length(&mut self, input: &[u8], unauthenticated: bool) -> Result<usize, Step> {
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
        if unauthenticated && length > MAX_UNAUTHENTICATED_BULK {
            return Err(wrong("unauthenticated bulk length"));
        }
        self.bulk = Some(length);
        Ok(length)
    }

    /// Parses the number on the line at `at` and moves `at` behind the line, if the line has the usual form: the mark
    /// and up to [`MAX_SHORT`] digits; and if enough bytes have arrived. Otherwise changes nothing.
    #[inline]
    fn short_length(&mut self, input: &[u8], mark: u8) -> Option<usize> {
        let line: &[u8; MAX_SHORT + 3] = input.get(self.at..)?.first_chunk()?;
        if line[0] != mark {
            return None;
        }
        // As everywhere, the byte behind the return counts as the line feed.
        let (length, digits) = match line[1..] {
            [a @ b'0'..=b'9', b'\r', ..] => (decimal([a]), 1),
            [a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', ..] => (decimal([a, b]), 2),
            [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b'\r', ..] => (decimal([a, b, c]), 3),
            [
                a @ b'1'..=b'9',
                b @ b'0'..=b'9',
                c @ b'0'..=b'9',
                d @ b'0'..=b'9',
                b'\r',
                ..,
            ] => (decimal([a, b, c, d]), 4),
            _ => return None,
        };
        self.at += digits + 3;
        self.searched = 0;
        Some(length)
    }

    /// Returns the line at `at` without its end, and moves `at` behind it.
    fn line<'b>(&mut self, input: &'b [u8], too_long: &str) -> Result<&'b [u8], Step> {
        let rest = input.get(self.at..).unwrap_or_default();
        let from = self.searched.min(rest.len());
        match end_of_line(b'\r', rest, from) {
            // The byte behind the return counts as the line feed, as in Redis.
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
        if inline::split(line, &mut self.inline, &mut self.args).is_none() {
            return Err(wrong("unbalanced quotes in request"));
        }
        Ok(end + 1)
    }
}

/// Returns the number that has these digits.
#[inline]
fn decimal<const N: usize>(digits: [u8; N]) -> usize {
    let append = |number, digit: u8| number * 10 + usize::from(digit - b'0');
    digits.into_iter().fold(0, append)
}

/// Returns where a line ends, or else up to where there is no end. As in Redis, a line with a zero byte never ends.
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

//! The memcached text protocol, classic and meta commands, from bytes to requests.
//!
//! I1 Pure: no input or output, no clock, no allocation. The result depends on the bytes alone, not on how the network
//!    has cut them into segments.
//! I2 No input makes the parser panic, and it never asks to hold more than [`Limits::longest`] bytes at once: it skips
//!    the body of a value that is too large as the bytes arrive.
//! I3 If a line is wrong, the parser gives the answer that memcached 1.6 gives and skips what memcached skips: the body
//!    behind an `ms` with wrong flags, but not that behind another wrong storage command, which it reads as commands.
//!
//! Here: cutting the input into lines and bodies. Not here: the lines themselves (`line`, `meta`), what the requests do
//! (`commands`), where the bytes come from (`net`).

mod line;
mod meta;
mod parsed;

use super::request::{Body, Request};
use parsed::{BAD_CHUNK, Line};

/// The longest line that is not a `get` or `gets`, in bytes.
const MAX_LINE: usize = 2048;

/// Bounds on the bytes that the parser asks its connection to hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest value, in bytes.
    pub value: usize,
    /// The longest `get` or `gets` line, in bytes.
    pub get_line: usize,
}

impl Limits {
    /// Returns the maximum number of bytes that a request can occupy.
    pub fn longest(&self) -> usize {
        (MAX_LINE + self.value + 4).max(self.get_line + 2)
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

/// The parser of one connection: what it remembers between two calls.
#[derive(Clone, Debug)]
pub struct Parser {
    limits: Limits,
    /// Bytes that have not arrived yet of a body that is refused or too large.
    skip: u64,
    /// Bytes of an unfinished line in which there is no line end.
    searched: usize,
}

impl Parser {
    /// Creates the parser of a new connection.
    pub fn new(limits: Limits) -> Parser {
        Parser {
            limits,
            skip: 0,
            searched: 0,
        }
    }

    /// Applies these limits to all requests from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Parses the next request in `input`, which begins where the last step's `used` ended.
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
        let request = match parsed.line {
            Line::Whole(request) => request,
            Line::Refused { why, length } => {
                self.skip = length + 2;
                Request::Wrong(why)
            }
            Line::Body { body, length } => match usize::try_from(length) {
                Ok(length) if length <= self.limits.value => {
                    return self.body(body, (input, used), length, noreply);
                }
                _ => {
                    self.skip = length + 2;
                    Request::TooLarge(body)
                }
            },
        };
        Step::Request {
            used,
            request,
            noreply,
        }
    }

    /// Reads the `length` bytes of data that follow a storage command, whose line ends before `begin`.
    fn body<'b>(
        &mut self,
        body: Body<'b>,
        (input, begin): (&'b [u8], usize),
        length: usize,
        noreply: bool,
    ) -> Step<'b> {
        let end = begin + length;
        let used = end + 2;
        if input.len() < used {
            // The next search begins at the end of the line, and so finds it at once.
            self.searched = begin - 1;
            return Step::More { used: 0, want: used };
        }
        let request = if input[end..used] == *b"\r\n" {
            Request::Store {
                body,
                data: &input[begin..end],
            }
        } else {
            Request::Wrong(BAD_CHUNK)
        };
        Step::Request {
            used,
            request,
            noreply,
        }
    }
}

/// Returns whether the line is a `get` or `gets`, the only ones that may be long.
fn is_get(input: &[u8]) -> bool {
    let blanks = input.iter().take_while(|&&byte| byte == b' ').count();
    let rest = &input[blanks..];
    blanks <= 100 && (rest.starts_with(b"get ") || rest.starts_with(b"gets "))
}

#[cfg(test)]
mod tests;

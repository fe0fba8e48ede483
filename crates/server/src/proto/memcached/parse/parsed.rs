//! The result of parsing a command line, and the errors that several commands share.

use super::super::request::{Body, Request};

/// The largest length a storage command may announce: memcached counts in `int`, with the final `\r\n` added.
pub const MAX_LENGTH: u64 = i32::MAX as u64 - 2;

pub const ERROR: &str = "ERROR\r\n";
pub const BAD_CHUNK: &str = "CLIENT_ERROR bad data chunk\r\n";
pub const BAD_LINE: &str = "CLIENT_ERROR bad command line format\r\n";

/// A parsed command line. `noreply`: the client wants no answer.
pub struct Parsed<'b> {
    pub line: Line<'b>,
    pub noreply: bool,
}

/// The content of a line.
pub enum Line<'b> {
    /// A complete request.
    Whole(Request<'b>),
    /// The beginning of a storage command, and how many bytes of data follow.
    Body { body: Body<'b>, length: u64 },
    /// A wrong line that announces a body of `length` bytes; `why` is the answer.
    Refused { why: &'static str, length: u64 },
}

/// Returns a line that is no request and gets this answer.
pub fn wrong(answer: &'static str) -> Parsed<'static> {
    whole(Request::Wrong(answer))
}

/// Returns a line that is a complete request.
pub fn whole(request: Request<'_>) -> Parsed<'_> {
    Parsed {
        line: Line::Whole(request),
        noreply: false,
    }
}

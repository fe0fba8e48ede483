//! Draws Redis's commands.

mod keys;
mod lives;
mod strings;
mod transaction;

use super::reply::{Expected, Reply};
use super::step::{Draw, Step};
use super::truth::{OWN, SHARED};
use super::wire::Protocol;
pub(super) use transaction::{exec, transaction};

/// A command: its name, its arguments, and the expected answer.
pub(super) struct Command {
    pub name: &'static str,
    pub words: Vec<Vec<u8>>,
    pub expected: Expected,
}

impl Command {
    pub fn new<W: Into<Vec<u8>>>(
        name: &'static str,
        words: impl IntoIterator<Item = W>,
        expected: Expected,
    ) -> Command {
        Command {
            name,
            words: words.into_iter().map(Into::into).collect(),
            expected,
        }
    }

    /// Appends arguments.
    pub fn with<W: Into<Vec<u8>>>(mut self, words: impl IntoIterator<Item = W>) -> Command {
        self.words.extend(words.into_iter().map(Into::into));
        self
    }

    /// Returns the bytes to send.
    pub fn request(&self) -> Vec<u8> {
        let mut request = format!(
            "*{}\r\n${}\r\n{}\r\n",
            1 + self.words.len(),
            self.name.len(),
            self.name
        )
        .into_bytes();
        for word in &self.words {
            request.extend(format!("${}\r\n", word.len()).bytes());
            request.extend(word);
            request.extend(b"\r\n");
        }
        request
    }
}

/// Expects a status.
fn line(text: &str) -> Expected {
    Expected::Is(Reply::line(text))
}

fn error(text: &str) -> Expected {
    Expected::Is(Reply::error(text))
}

fn int(number: i64) -> Expected {
    Expected::Is(Reply::Int(number))
}

const NOT_INTEGER: &str = "ERR value is not an integer or out of range";

/// Draws the next request.
pub(super) fn draw(draw: &mut Draw<'_>) -> Step {
    match draw.random.below(100) {
        0..6 => transaction(draw),
        6..9 => select(draw),
        9..11 => other(draw),
        _ => {
            let command = command(draw);
            let plain = command.name == "SET" && command.words.len() == 2;
            let mut step = draw.step(
                command.name,
                Protocol::Redis,
                command.request(),
                vec![command.expected],
            );
            step.may_be_grouped = plain;
            step
        }
    }
}

/// Draws a command that may also be part of a transaction.
fn command(draw: &mut Draw<'_>) -> Command {
    match draw.random.below(100) {
        0..55 => strings::draw(draw),
        55..75 => lives::draw(draw),
        _ => keys::draw(draw),
    }
}

/// Draws a `SELECT` of the shared database or of the user's own.
fn select(draw: &mut Draw<'_>) -> Step {
    *draw.database = if draw.random.one_in(2) { SHARED } else { OWN };
    let number = if *draw.database == SHARED { 0 } else { draw.user };
    let command = Command::new("SELECT", [number.to_string()], line("OK"));
    draw.step(
        "SELECT",
        Protocol::Redis,
        command.request(),
        vec![command.expected],
    )
}

/// Draws a command without keys.
fn other(draw: &mut Draw<'_>) -> Step {
    let command = match draw.random.below(16) {
        0 => Command::new("PING", [""; 0], line("PONG")),
        1 => {
            let data = draw.data();
            Command::new("ECHO", [&*data], Expected::Is(Reply::Bulk(data.clone())))
        }
        2 => Command::new("TIME", [""; 0], Expected::Any),
        3 => Command::new("DBSIZE", [""; 0], Expected::Any),
        4 => Command::new(
            "INFO",
            [draw.random.pick(&["server", "keyspace", "stats"])],
            Expected::Any,
        ),
        5 => Command::new("COMMAND", ["COUNT"], Expected::Any),
        6 => Command::new("CONFIG", ["GET", "max*"], Expected::Any),
        7 => Command::new("SLOWLOG", ["LEN"], Expected::Any),
        8 => Command::new("CLIENT", ["SETNAME", "exerciser"], line("OK")),
        9 => Command::new("LASTSAVE", [""; 0], Expected::Any),
        10 => Command::new("BGSAVE", ["SCHEDULE"], Expected::Any),
        11 => Command::new("UNWATCH", [""; 0], line("OK")),
        12 => Command::new("DISCARD", [""; 0], error("ERR DISCARD without MULTI")),
        13 => Command::new("WAITAOF", ["0", "0", "10"], Expected::Any),
        14 => Command::new("BGREWRITEAOF", [""; 0], Expected::Any),
        _ => Command::new("EXEC", [""; 0], error("ERR EXEC without MULTI")),
    };
    draw.step(
        command.name,
        Protocol::Redis,
        command.request(),
        vec![command.expected],
    )
}

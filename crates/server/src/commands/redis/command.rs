//! Properties of a command.

use crate::items::item::{HEADER, PLACE};
use crate::items::number;
use crate::ops::config::LARGEST_VALUE;
use crate::proto::redis::args::Args;

/// What there is to know of a command, except how to carry it out.
pub struct Command {
    /// Its place in the catalogue.
    pub number: usize,
    pub name: &'static str,
    /// The number of its words, its name included; a negative number means at least that many.
    pub arity: i64,
    pub kind: Kind,
    /// The places of its keys: the first, the last (negative: from the end), and the step; 0: it has none.
    pub keys: (i64, i64, i64),
    /// Its group in Redis's documentation.
    pub group: &'static str,
    pub about: &'static str,
    /// The names of its subcommands if it is a container, each with its arity.
    pub subcommands: &'static [(&'static str, i64)],
    /// The number of its first subcommand. Subcommands are numbered behind all commands.
    pub first_subcommand: usize,
}

/// What a command does to the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It neither reads nor writes data.
    Neither,
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It writes several keys, or may, atomically for all readers, and so has exclusive use of the databases.
    Alone,
}

/// Bytes of the longest number that a counting command stores.
const NUMBER: u64 = 48;

/// Returns whether a command of this arity takes this many words.
pub fn takes(arity: i64, words: usize) -> bool {
    let words = words as i64;
    match arity {
        least @ ..0 => words >= -least,
        exact => words == exact,
    }
}

impl Command {
    /// Iterates over the keys among its arguments.
    pub fn keys<'a>(&self, args: Args<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (first, last, step) = self.keys;
        let last = if last < 0 { args.len() as i64 + last } else { last };
        let count = if first == 0 {
            0
        } else {
            (last - first + step) / step
        };
        args.from(first.max(1) as usize)
            .step_by(step.max(1) as usize)
            .take(count.max(0) as usize)
    }

    /// Returns an upper bound on the bytes by which it may grow items.
    pub fn growth(&self, args: Args<'_>) -> u64 {
        let grows = matches!(
            self.name,
            "append"
                | "decr"
                | "decrby"
                | "getset"
                | "incr"
                | "incrby"
                | "incrbyfloat"
                | "mset"
                | "msetnx"
                | "psetex"
                | "rename"
                | "renamenx"
                | "set"
                | "setex"
                | "setnx"
                | "setrange"
        );
        if !grows {
            return 0;
        }
        let words = args.from(1).map(|word| word.len() as u64).sum::<u64>();
        let items = self.keys(args).count() as u64 * (PLACE + HEADER as u64 + NUMBER);
        // Zeros between the old end and the offset written to.
        let gap = match self.name {
            "setrange" => number::strict(args.get(2)).map_or(0, |offset| offset.unsigned_abs()),
            _ => 0,
        };
        (words + items).saturating_add(gap.min(LARGEST_VALUE as u64))
    }

    /// Returns whether it is carried out at once between `MULTI` and `EXEC`.
    pub fn is_not_queued(&self) -> bool {
        matches!(
            self.name,
            "exec" | "discard" | "multi" | "watch" | "quit" | "reset"
        )
    }

    /// Returns whether a client may send it before it has logged in.
    pub fn needs_no_login(&self) -> bool {
        matches!(self.name, "auth" | "hello" | "quit" | "reset")
    }
}

//! `scan`: entries in key order.

use super::output;
use super::point::Escaped;
use crate::context::Context;
use crate::exit::{Failure, Outcome};
use crate::format::{Format, json, tsv};
use std::ffi::OsString;
use std::io::Write;
use std::ops::Bound;
use wollemi::{Entry, Error};

/// The arguments of `scan`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Each line is KEY TAB VALUE, with the escapes \\t \\n \\r \\\\ and \\xNN; \
with --json an object with key or key_base64, and value or value_base64."
)]
pub struct Args {
    /// Start at this key
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// Stop before this key
    #[arg(long, value_name = "KEY", conflicts_with = "through")]
    to: Option<OsString>,
    /// Stop after this key
    #[arg(long, value_name = "KEY")]
    through: Option<OsString>,
    /// Print only keys with this prefix
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to", "through"])]
    prefix: Option<OsString>,
    /// Print in descending order of keys
    #[arg(long)]
    reverse: bool,
    /// Print at most this many entries
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Print keys without values
    #[arg(long)]
    keys: bool,
    #[command(flatten)]
    escaped: Escaped,
}

impl Args {
    /// Writes the requested entries, one per line.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let bytes = |argument: Option<OsString>| argument.map(|key| self.escaped.bytes(key)).transpose();
        let from = bytes(self.from)?.map_or(Bound::Unbounded, Bound::Included);
        let to = bytes(self.to)?.map(Bound::Excluded);
        let to = to
            .or(bytes(self.through)?.map(Bound::Included))
            .unwrap_or(Bound::Unbounded);
        let prefix = bytes(self.prefix)?;

        let db = context.open_to_read()?;
        let map = context.find_map(&db)?;
        let entries = match prefix {
            Some(prefix) => map.prefix(prefix),
            None => map.range((from, to)),
        };
        if self.reverse {
            print(entries.rev(), self.limit, self.keys, context.json)
        } else {
            print(entries, self.limit, self.keys, context.json)
        }
    }
}

fn print(
    entries: impl Iterator<Item = Result<Entry, Error>>,
    limit: Option<u64>,
    keys: bool,
    json: bool,
) -> Result<Outcome, Failure> {
    let mut out = output();
    let limit = limit
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(usize::MAX);
    for entry in entries.take(limit) {
        let (key, value) = entry?;
        match (keys, json) {
            (true, true) => json::write_key(&mut out, &key)?,
            (true, false) => tsv::escape(&mut out, &key)?,
            (false, true) => Format::Jsonl.write(&mut out, &key, &value)?,
            (false, false) => Format::Tsv.write(&mut out, &key, &value)?,
        }
        if keys {
            out.write_all(b"\n")?;
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

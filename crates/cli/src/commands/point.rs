//! `get`, `put`, `del`: one key at a time.

use super::{despite_closed_pipe, output, write_json};
use crate::context::{Context, NewMap};
use crate::exit::{Failure, Outcome};
use crate::format::{json, tsv};
use serde::Serialize;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::ffi::OsStringExt;

/// The form of keys and values on the command line.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Escaped {
    /// Keys and values on the command line use the escapes of tab-separated files: \t \n \r \\ \xNN
    #[arg(short = 'e', long)]
    escaped: bool,
}

impl Escaped {
    /// Returns the bytes that an argument stands for.
    pub fn bytes(self, argument: OsString) -> Result<Vec<u8>, Failure> {
        let bytes = argument.into_vec();
        if self.escaped {
            tsv::unescape(&bytes).map_err(Failure::Usage)
        } else {
            Ok(bytes)
        }
    }
}

/// The arguments of `get`.
#[derive(Debug, clap::Args)]
pub struct Get {
    key: OsString,
    #[command(flatten)]
    escaped: Escaped,
}

impl Get {
    /// Writes the value unchanged, with a newline on a terminal; escaped and with a newline if the key was escaped.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let key = self.escaped.bytes(self.key)?;
        let db = context.open_to_read()?;
        let map = context.find_map(&db)?;
        let reader = map.reader();
        let Some(value) = reader.get(&key)? else {
            return Ok(Outcome::NotFound);
        };
        let mut out = output();
        if context.json {
            json::write(&mut out, &key, &value)?;
            out.write_all(b"\n")?;
        } else if self.escaped.escaped {
            tsv::escape(&mut out, &value)?;
            out.write_all(b"\n")?;
        } else {
            out.write_all(&value)?;
            if io::stdout().is_terminal() && !value.ends_with(b"\n") {
                out.write_all(b"\n")?;
            }
        }
        out.flush()?;
        Ok(Outcome::Done)
    }
}

/// The arguments of `put`.
#[derive(Debug, clap::Args)]
pub struct Put {
    key: OsString,
    /// The value; if not given, it is read from the standard input
    value: Option<OsString>,
    /// Put only if the key is absent; exit code 1 if it is present
    #[arg(long, conflicts_with = "if_present")]
    if_absent: bool,
    /// Put only if the key is present; exit code 1 if it is absent
    #[arg(long)]
    if_present: bool,
    #[command(flatten)]
    escaped: Escaped,
    #[command(flatten)]
    new: NewMap,
}

impl Put {
    /// Reads the value and writes the entry.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let key = self.escaped.bytes(self.key)?;
        let value = match self.value {
            Some(value) => self.escaped.bytes(value)?,
            None => {
                let mut value = Vec::new();
                // One byte above the limit suffices for the error.
                let mut input = io::stdin().lock().take(wollemi::MAX_VALUE as u64 + 1);
                input
                    .read_to_end(&mut value)
                    .map_err(|error| Failure::input("standard input", error))?;
                value
            }
        };
        let db = context.open_to_write(true)?;
        let map = context.map(&db, self.new)?;
        let written = if self.if_absent {
            map.insert(key, value)?
        } else if self.if_present {
            map.update(key, value)?
        } else {
            map.upsert(key, value)?;
            true
        };
        drop(map);
        db.close()?;
        Ok(if written { Outcome::Done } else { Outcome::NotFound })
    }
}

/// The arguments of `del`.
#[derive(Debug, clap::Args)]
pub struct Del {
    /// The keys to remove; exit code 1 if any is absent
    #[arg(required = true)]
    keys: Vec<OsString>,
    #[command(flatten)]
    escaped: Escaped,
}

#[derive(Serialize)]
struct Removed {
    removed: u64,
    absent: u64,
}

impl Del {
    /// Removes each key that is present.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let keys = self.keys.into_iter().map(|key| self.escaped.bytes(key));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let db = context.open_to_write(false)?;
        let map = context.find_map(&db)?;
        let (mut removed, mut absent) = (0, 0);
        for key in keys {
            *(if map.remove(key)? {
                &mut removed
            } else {
                &mut absent
            }) += 1;
        }
        drop(map);
        db.close()?;
        if context.json {
            let mut out = output();
            despite_closed_pipe(write_json(&mut out, &Removed { removed, absent }))?;
        }
        Ok(if absent == 0 {
            Outcome::Done
        } else {
            Outcome::NotFound
        })
    }
}

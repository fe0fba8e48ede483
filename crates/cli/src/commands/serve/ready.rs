//! The output lines of `serve`: one when it is ready, one when it has stopped.

use super::super::{in_words, output, write_json};
use crate::exit::Failure;
use indicatif::HumanCount;
use serde::{Serialize, Serializer};
use server::ServeReport;
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};
use wollemi::{Map, RecoveryState};

/// Maximum time for counting entries at the start.
const COUNTING: Duration = Duration::from_millis(20);

/// The line that the server prints when it is ready.
#[derive(Serialize)]
pub struct Ready<'a> {
    #[serde(serialize_with = "in_text")]
    pub pool: &'a Path,
    pub level: String,
    /// When writes are durable, in a pool of level `disk`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<&'static str>,
    pub map: &'a str,
    pub index: &'static str,
    pub entries: u64,
    /// Whether the count is exact, or only covers the entries that could be counted without delaying clients.
    pub entries_exact: bool,
    pub opened_in: f64,
    pub recovery: RecoveryState,
    pub memcached: Vec<String>,
    pub redis: Vec<String>,
    pub metrics: Option<SocketAddr>,
}

/// Serializes a path as text, whatever bytes it has.
fn in_text<S: Serializer>(path: &&Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Logs that a line could not be written. The server continues: its clients do not depend on its output. Logs nothing
/// if the reader has closed the pipe.
pub fn log_output_error(said: io::Result<()>) {
    if let Err(error) = said
        && error.kind() != ErrorKind::BrokenPipe
    {
        tracing::warn!(%error, "standard output");
    }
}

pub fn say_goodbye(report: &ServeReport) -> io::Result<()> {
    let mut out = output();
    writeln!(
        out,
        "stopped after {:.1} s: {} connections, {} gets, {} sets",
        report.elapsed.as_secs_f64(),
        HumanCount(report.connections),
        HumanCount(report.gets),
        HumanCount(report.sets)
    )?;
    out.flush()
}

pub fn announce(ready: &Ready<'_>, json: bool) -> io::Result<()> {
    let mut out = output();
    if json {
        write_json(&mut out, ready)?;
    } else {
        writeln!(
            out,
            "pool {}, level {}{}, {}{}, opened in {:.1} ms, recovery {}; memcached on {}{}{}",
            ready.pool.display(),
            ready.level,
            ready
                .sync
                .map(|sync| format!(", sync {sync}"))
                .unwrap_or_default(),
            if ready.entries_exact { "" } else { "more than " },
            in_words(ready.entries),
            ready.opened_in * 1e3,
            ready.recovery,
            ready.memcached.join(", "),
            match ready.redis.is_empty() {
                true => String::new(),
                false => format!("; redis on {}", ready.redis.join(", ")),
            },
            match ready.metrics {
                None => String::new(),
                Some(address) => format!("; metrics on {address}"),
            }
        )?;
    }
    out.flush()
}

/// Counts items for a short time; returns the number, and whether it is complete. The server's own record, under the
/// empty key, is not counted.
pub fn count(map: &Map) -> Result<(u64, bool), Failure> {
    const STRIDE: u64 = 1024;
    let started = Instant::now();
    let reader = map.reader();
    let (mut entries, mut all) = (0, true);
    reader.visit(.., |key, _| {
        entries += u64::from(!key.is_empty());
        all = entries % STRIDE != 0 || started.elapsed() < COUNTING;
        if all {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok((entries, all))
}

//! `stats`: what is in the pool.

use super::{in_words, output};
use crate::context::Context;
use crate::exit::{Failure, Outcome};
use indicatif::{BinaryBytes, HumanCount};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use wollemi::{Db, Stats};

/// The arguments of `stats`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Count each map's entries too, by visiting them
    #[arg(long)]
    count: bool,
    /// Wait until recovery has told used from free space
    #[arg(long)]
    wait: bool,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    stats: Stats,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<BTreeMap<String, u64>>,
}

impl Args {
    /// Reports on the pool.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let db = context.open_to_write(false)?;
        if self.wait {
            db.wait_recovered();
        }
        let entries = self.count.then(|| count(&db)).transpose()?;
        let report = Report {
            stats: db.stats()?,
            entries,
        };
        let mut out = output();
        if context.json {
            serde_json::to_writer(&mut out, &report).map_err(io::Error::from)?;
            writeln!(out)?;
        } else {
            print(&mut out, &report)?;
        }
        out.flush()?;
        Ok(Outcome::Done)
    }
}

fn count(db: &Db) -> Result<BTreeMap<String, u64>, wollemi::Error> {
    let mut entries = BTreeMap::new();
    for map in db.maps()? {
        if let Some(found) = db.find_map(&map.name)? {
            entries.insert(map.name, found.count()?);
        }
    }
    Ok(entries)
}

fn print(out: &mut impl Write, Report { stats, entries }: &Report) -> io::Result<()> {
    let space = stats.space;
    if let Some(path) = &stats.path {
        writeln!(out, "pool        {}", path.display())?;
    }
    writeln!(out, "uuid        {}", stats.uuid)?;
    writeln!(out, "level       {}", stats.level)?;
    writeln!(
        out,
        "generation  {} (before it: {}; crashes: {})",
        stats.generation, stats.last_shutdown, stats.crashes
    )?;
    writeln!(out, "opened in   {:.1} ms", stats.opened_in * 1e3)?;
    writeln!(out, "page size   {}", BinaryBytes(stats.page_size))?;
    writeln!(
        out,
        "size        {} of at most {}",
        BinaryBytes(space.reserved),
        BinaryBytes(stats.max_size)
    )?;
    writeln!(
        out,
        "  used      {} in {} objects",
        BinaryBytes(space.used),
        HumanCount(space.objects)
    )?;
    writeln!(
        out,
        "  free      {}, of which the file system has {}",
        BinaryBytes(space.free),
        BinaryBytes(space.given_back)
    )?;
    writeln!(out, "  unswept   {}", BinaryBytes(space.unswept))?;
    writeln!(
        out,
        "recovery    {}: {} objects, {} of {} pages, {:.1} ms",
        stats.recovery.state,
        HumanCount(stats.recovery.objects),
        HumanCount(stats.recovery.pages_swept),
        HumanCount(stats.recovery.pages),
        stats.recovery.seconds * 1e3
    )?;
    for map in &stats.maps {
        write!(out, "map         {} ({})", map.name, map.index)?;
        if let Some(entries) = entries.as_ref().and_then(|entries| entries.get(&map.name)) {
            write!(out, ": {}", in_words(*entries))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

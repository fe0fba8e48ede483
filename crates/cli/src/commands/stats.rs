//! `stats`: statistics of the pool.

use super::{in_words, on_a_line, output, write_json};
use crate::context::Context;
use crate::exit::{Failure, Outcome};
use indicatif::{BinaryBytes, HumanCount};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use wollemi::{Db, Level, Map, Merges, Stats};

/// The arguments of `stats`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Also count the entries of each map by visiting them
    #[arg(long)]
    count: bool,
    /// Wait until recovery has found the free space
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
    /// Prints the statistics.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        context.refuse_map()?;
        let db = context.open_for_report()?;
        if self.wait {
            db.wait_recovered();
        }
        // Handles, so that the maps report on their merges.
        let _held = hold(&db)?;
        let entries = self.count.then(|| count(&db)).transpose()?;
        let report = Report {
            stats: db.stats()?,
            entries,
        };
        let mut out = output();
        if context.json {
            write_json(&mut out, &report)?;
        } else {
            print(&mut out, &report)?;
        }
        out.flush()?;
        Ok(Outcome::Done)
    }
}

/// Returns handles to the maps that can be opened.
fn hold(db: &Db) -> Result<Vec<Map>, wollemi::Error> {
    let maps = db.maps()?.into_iter();
    Ok(maps
        .filter_map(|map| db.find_map(&map.name).ok().flatten())
        .collect())
}

fn print_merges(out: &mut impl Write, merges: &Merges) -> io::Result<()> {
    write!(
        out,
        "  merges    {} since opened; {} of {} writes gathered for the next",
        HumanCount(merges.merges),
        HumanCount(merges.gathered),
        HumanCount(merges.threshold)
    )?;
    if merges.merging > 0 {
        write!(
            out,
            "; of {} writes under way: {}, {} of {} parts",
            HumanCount(merges.merging),
            merges.phase,
            merges.parts_done,
            merges.parts
        )?;
    }
    if let Some(why) = &merges.failed {
        write!(out, "; the last one failed: {why}")?;
    }
    writeln!(out)
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
    if stats.suspect {
        let remedy = match stats.level == Level::Disk.name() {
            true => "the next opening to write rebuilds the pool from the checkpoint and the log beside it",
            false => "`wollemi accept-loss` checks what is left and accepts it",
        };
        writeln!(out, "SUSPECT     the page cache was lost: {remedy}")?;
    }
    if let Some(log) = &stats.log {
        writeln!(
            out,
            "log         {} kept of at most {}, replayed from {} after a loss of power",
            BinaryBytes(log.kept),
            BinaryBytes(log.limit),
            log.replayed_from
        )?;
        if let Some(why) = &log.failure {
            writeln!(out, "LOG FAILED  {why}")?;
        }
    }
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
        "  free      {}, of which {} were returned to the file system",
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
        write!(out, "map         {} ({})", on_a_line(&map.name), map.index)?;
        if let Some(entries) = entries.as_ref().and_then(|entries| entries.get(&map.name)) {
            write!(out, ": {}", in_words(*entries))?;
        }
        writeln!(out)?;
        if let Some(merges) = stats.merges.get(&map.name) {
            print_merges(out, merges)?;
        }
    }
    Ok(())
}

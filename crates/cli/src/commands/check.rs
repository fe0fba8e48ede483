//! `check`: walks the whole pool.

use super::{despite_closed_pipe, on_a_line, output, write_json};
use crate::context::Context;
use crate::exit::{Failure, Outcome};
use indicatif::{BinaryBytes, HumanCount};
use serde::Serialize;
use std::io::{self, Write};
use wollemi::Check;

/// The arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Changes nothing. The exit code is 0 if the pool is sound, 4 if a fault was found.")]
pub struct Args {}

#[derive(Serialize)]
struct Report<'a> {
    clean: bool,
    #[serde(flatten)]
    check: &'a Check,
}

impl Args {
    /// Reports every fault.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        context.refuse_map()?;
        let db = context.to_read().open(context.pool())?;
        let check = db.check()?;
        despite_closed_pipe(report(&check, context.json))?;
        Ok(match check.is_clean() {
            true => Outcome::Done,
            false => Outcome::Damaged,
        })
    }
}

/// Prints the result of a check on the standard output.
pub fn report(check: &Check, json: bool) -> io::Result<()> {
    let mut out = output();
    if json {
        let clean = check.is_clean();
        write_json(&mut out, &Report { clean, check })?;
    } else {
        print(&mut out, check)?;
    }
    out.flush()
}

fn print(out: &mut impl Write, check: &Check) -> io::Result<()> {
    for map in &check.maps {
        let (keys, objects) = (HumanCount(map.keys), HumanCount(map.objects));
        writeln!(
            out,
            "map '{}' ({}): {keys} keys in {objects} objects, {} faults",
            on_a_line(&map.name),
            map.index,
            map.faults.len()
        )?;
        for fault in &map.faults {
            writeln!(out, "  {fault}")?;
        }
    }
    let heap = &check.heap;
    writeln!(
        out,
        "heap: {} objects reachable ({}), {} chunks unreachable, {} doubly reachable",
        HumanCount(heap.reachable),
        BinaryBytes(heap.reachable_bytes),
        HumanCount(heap.unreachable),
        HumanCount(heap.doubly_reachable)
    )?;
    for fault in &heap.faults {
        writeln!(out, "  {fault}")?;
    }
    writeln!(out, "{}", if check.is_clean() { "clean" } else { "DAMAGED" })
}

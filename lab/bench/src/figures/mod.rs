//! `bench figures`: what the papers plot, of every index, on one page.
//!
//! I1 Every number comes from a run of `wollemi-lab bench` as a process of its own, whose command line the page shows.
//! I2 Runs of one round follow each other figure by figure and place by place, indexes side by side, so that a slow
//!    minute meets them alike; every other round has them the other way round, so that none always comes first
//!    (`order`). Medians and extremes are over the rounds. A panel may ask for several runs in each round, which then
//!    count as rounds.
//! I3 What has been run is kept (`cells.jsonl`) with its commit and date, and is not run again when the command is
//!    given again; the page says of each figure with what it was run.
//! I4 Every run is calibrated: what a miss took before and after it stands with its numbers, and marks them if it
//!    changed.
//! I5 A ratio states within what a further run is to find it (`ratio`), and a further run is held against that
//!    (`against`). A paper's number is judged by it too (`draw`).

mod against;
mod cell;
mod draw;
mod order;
mod page;
mod plan;
mod ratio;
mod sample;
mod svg;

use crate::Error;
use crate::build::{self, Build};
use crate::machine::Machine;
use crate::progress::Progress;
use against::Against;
use cell::{Cell, Kept};
use draw::{Drawn, draw};
use plan::{Figure, Scale};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

/// Runs what the papers plot.
#[derive(Debug, clap::Args)]
pub struct FiguresArgs {
    /// How large
    #[arg(long, value_enum)]
    scale: Scale,
    /// Where the page and all numbers go; what is there from before is used
    #[arg(long, value_name = "DIRECTORY")]
    out: PathBuf,
    /// Only figures whose id begins so, e.g. roart-16, wort
    #[arg(long, value_delimiter = ',', value_name = "ID")]
    only: Vec<String>,
    /// Rounds [default: one for smoke, three else]
    #[arg(long, value_parser = crate::count)]
    rounds: Option<usize>,
    /// Hold the ratios against those of another run, by its own directory (with `cells.jsonl`), and say which lie
    /// outside of the spread stated there
    #[arg(long, value_name = "DIRECTORY")]
    against: Option<PathBuf>,
    /// Print a line of JSON for each figure too, and with `--against` one for that
    #[arg(long)]
    json: bool,
}

impl FiguresArgs {
    /// Those asked for; what names none is an error.
    fn picked(&self, mut figures: Vec<Figure>) -> Result<Vec<Figure>, Error> {
        let named = |id: &str, figure: &Figure| figure.id.starts_with(id);
        if let Some(id) = self
            .only
            .iter()
            .find(|id| !figures.iter().any(|figure| named(id, figure)))
        {
            return Err(Error::NoFigure {
                id: id.clone(),
                all: figures
                    .iter()
                    .map(|figure| figure.id)
                    .collect::<Vec<_>>()
                    .join(", "),
            });
        }
        figures.retain(|figure| self.only.is_empty() || self.only.iter().any(|id| named(id, figure)));
        Ok(figures)
    }
}

/// What the page was made on.
#[derive(Debug, Serialize)]
struct Conditions {
    scale: Scale,
    keys: usize,
    machine: Machine,
    #[serde(flatten)]
    build: Build,
    version: &'static str,
}

/// Runs what has not been run, and writes the page, the numbers and each plot.
pub fn run(args: &FiguresArgs) -> Result<(), Error> {
    let machine = Machine::detect();
    let rounds = args.rounds.unwrap_or(args.scale.rounds());
    let figures = args.picked(plan::figures(args.scale, machine.cores))?;
    std::fs::create_dir_all(&args.out).map_err(Error::Directory)?;
    let mut kept = Kept::open(&args.out.join("cells.jsonl"))?;
    let build = Build::now();
    run_cells(args, &figures, rounds, &build, &mut kept)?;
    let draw_all = |kept: &Kept| -> Vec<Drawn> { figures.iter().map(|figure| draw(figure, kept)).collect() };
    let drawn = draw_all(&kept);
    let held = |first: &PathBuf| -> Result<Against, Error> {
        let before = Kept::read(&first.join("cells.jsonl"))?;
        Ok(against::hold(first, &draw_all(&before), &drawn))
    };
    let against = args.against.as_ref().map(held).transpose()?;
    let conditions = Conditions {
        scale: args.scale,
        keys: args.scale.keys(),
        machine,
        build,
        version: env!("CARGO_PKG_VERSION"),
    };
    let write = |name: &str, text: &str| std::fs::write(args.out.join(name), text).map_err(Error::Directory);
    let json = serde_json::json!({ "conditions": &conditions, "figures": &drawn });
    write("figures.json", &serde_json::to_string_pretty(&json)?)?;
    write("index.html", &page::render(&conditions, &drawn, against.as_ref()))?;
    write("summary.md", &page::summary(&conditions, &drawn))?;
    if let Some(against) = &against {
        write("against.json", &serde_json::to_string_pretty(against)?)?;
    }
    for figure in &drawn {
        for (i, panel) in figure
            .panels
            .iter()
            .enumerate()
            .filter(|(_, panel)| !panel.series.is_empty())
        {
            write(
                &format!("{}-{}.svg", figure.id, i + 1),
                &panel.plot(Some(figure.title)),
            )?;
        }
    }
    if args.json {
        for figure in &drawn {
            crate::print(&serde_json::to_string(figure)?)?;
        }
        if let Some(against) = &against {
            crate::print(&serde_json::to_string(against)?)?;
        }
        return Ok(());
    }
    if let Some(against) = &against {
        crate::print(&against.to_string())?;
    }
    let failed: usize = drawn.iter().map(|figure| figure.failed.len()).sum();
    let page = args.out.join("index.html");
    crate::print(&format!(
        "{} figures, {failed} runs failed: {}",
        drawn.len(),
        page.display()
    ))
}

/// Every cell of the figures, in rounds.
fn run_cells(
    args: &FiguresArgs,
    figures: &[Figure],
    rounds: usize,
    build: &Build,
    kept: &mut Kept,
) -> Result<(), Error> {
    let due: Vec<(usize, Cell)> = (1..=rounds)
        .flat_map(|round| order::cells(figures, round))
        .filter(|(round, cell)| !kept.has(cell, *round))
        .collect();
    let (progress, start, count) = (Progress::new(), Instant::now(), due.len());
    for (done, (round, cell)) in due.into_iter().enumerate() {
        let left = match done {
            0 => String::new(),
            _ => {
                let seconds = start.elapsed().as_secs_f64() / done as f64 * (count - done) as f64;
                format!(", {} left", minutes(seconds))
            }
        };
        progress.say(format_args!(
            "{} of {count}{left}: {} (round {round})",
            done + 1,
            cell.0
        ));
        let outcome = cell.run(&args.out)?;
        kept.keep(cell, round, build.today(), outcome)?;
    }
    Ok(())
}

fn minutes(seconds: f64) -> String {
    if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else {
        format!("{:.0} min", seconds / 60.0)
    }
}

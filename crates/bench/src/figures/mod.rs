//! `bench figures`: what the papers plot, of every index, on one page.
//!
//! I1 Every number comes from a run of `wollemi bench` as a process of its own, whose command line the page shows.
//! I2 Runs of one round follow each other figure by figure, indexes side by side, and rounds come one after the other,
//!    so that a slow minute meets the indexes alike; medians and extremes are over the rounds.
//! I3 What has been run is kept (`cells.jsonl`), and is not run again when the command is given again.

mod cell;
mod page;
mod plan;
mod svg;

use crate::Error;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::summary::Summary;
use cell::{Cell, Kept, Outcome};
use plan::{Figure, Measure, Panel, Point, Scale};
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Instant;
use svg::Series;

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
    /// Print a line of JSON for each figure too
    #[arg(long)]
    json: bool,
}

/// A figure with its numbers.
#[derive(Debug, Serialize)]
struct Drawn {
    id: &'static str,
    title: &'static str,
    paper: &'static str,
    differs: &'static str,
    panels: Vec<DrawnPanel>,
    claims: Vec<DrawnClaim>,
    /// Runs that gave nothing, and why.
    failed: Vec<(String, String)>,
    /// The command lines behind it.
    cells: Vec<String>,
}

#[derive(Debug, Serialize)]
struct DrawnPanel {
    title: String,
    unit: &'static str,
    places: Vec<String>,
    series: Vec<DrawnSeries>,
    #[serde(skip)]
    shape: svg::Shape,
}

#[derive(Debug, Serialize)]
struct DrawnSeries {
    name: String,
    values: Vec<Option<Summary>>,
}

/// A paper's ratio beside ours.
#[derive(Debug, Serialize)]
struct DrawnClaim {
    what: String,
    paper: f64,
    ours: Option<Summary>,
    /// Whether the paper's lies outside of ours, spread and a tenth more considered.
    differs: bool,
}

/// What the page was made on.
#[derive(Debug, Serialize)]
struct Conditions {
    scale: Scale,
    keys: usize,
    rounds: usize,
    machine: Machine,
    date: String,
    commit: String,
    version: &'static str,
}

/// Runs what has not been run, and writes the page, the numbers and each plot.
pub fn run(args: &FiguresArgs) -> Result<(), Error> {
    std::fs::create_dir_all(&args.out).map_err(Error::Directory)?;
    let machine = Machine::detect();
    let rounds = args.rounds.unwrap_or(args.scale.rounds());
    let figures: Vec<Figure> = plan::figures(args.scale, machine.cores)
        .into_iter()
        .filter(|figure| {
            args.only.is_empty() || args.only.iter().any(|id| figure.id.starts_with(id.as_str()))
        })
        .collect();
    let mut kept = Kept::open(&args.out.join("cells.jsonl"))?;
    run_cells(args, &figures, rounds, &mut kept)?;
    let drawn: Vec<Drawn> = figures.into_iter().map(|figure| draw(figure, &kept)).collect();
    let conditions = Conditions {
        scale: args.scale,
        keys: args.scale.keys(),
        rounds,
        machine,
        date: today(),
        commit: commit(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let write = |name: &str, text: &str| std::fs::write(args.out.join(name), text).map_err(Error::Directory);
    let json = serde_json::json!({ "conditions": &conditions, "figures": &drawn });
    write("figures.json", &serde_json::to_string_pretty(&json)?)?;
    write("index.html", &page::render(&conditions, &drawn))?;
    for figure in &drawn {
        for (i, panel) in figure
            .panels
            .iter()
            .enumerate()
            .filter(|(_, panel)| !panel.series.is_empty())
        {
            write(&format!("{}-{}.svg", figure.id, i + 1), &panel.plot())?;
        }
    }
    if args.json {
        for figure in &drawn {
            crate::print(&serde_json::to_string(figure)?)?;
        }
        return Ok(());
    }
    let failed: usize = drawn.iter().map(|figure| figure.failed.len()).sum();
    let page = args.out.join("index.html");
    crate::print(&format!(
        "{} figures, {failed} runs failed: {}",
        drawn.len(),
        page.display()
    ))
}

/// Every cell of the figures in the order of its first use, in rounds.
fn run_cells(args: &FiguresArgs, figures: &[Figure], rounds: usize, kept: &mut Kept) -> Result<(), Error> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut met = std::collections::HashSet::new();
    for point in figures
        .iter()
        .flat_map(|figure| &figure.panels)
        .flat_map(|panel| &panel.points)
    {
        if met.insert(&point.cell) {
            cells.push(point.cell.clone());
        }
    }
    let due: Vec<(usize, Cell)> = (1..=rounds)
        .flat_map(|round| cells.iter().map(move |cell| (round, cell.clone())))
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
        kept.keep(cell, round, outcome)?;
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

/// Places and series in the order of their first use, and what the runs gave for them.
fn draw(figure: Figure, kept: &Kept) -> Drawn {
    let (mut failed, mut cells) = (Vec::new(), Vec::new());
    for point in figure.panels.iter().flat_map(|panel| &panel.points) {
        let command = &point.cell.0;
        if cells.contains(command) {
            continue;
        }
        cells.push(command.clone());
        for outcome in kept.outcomes(&point.cell) {
            if let Outcome::Failed(why) = outcome {
                failed.push((command.clone(), why.clone()));
                break;
            }
        }
    }
    let rounds_of = |panel: usize, place: &str, series: &str| -> Vec<f64> {
        let points = figure.panels.get(panel).map_or(&[][..], |panel| &panel.points);
        let point = points
            .iter()
            .find(|point| point.place == place && point.series == series);
        point.map_or(Vec::new(), |point| values(point, kept))
    };
    let claims = figure.claims.iter().map(|claim| {
        let over = rounds_of(claim.panel, &claim.place, claim.over);
        let under = rounds_of(claim.panel, &claim.place, claim.under);
        let ours = Summary::of(over.iter().zip(&under).map(|(over, under)| over / under));
        let differs = ours.is_some_and(|ours| !(ours.least * 0.9..=ours.most * 1.1).contains(&claim.paper));
        let panel = figure.panels.get(claim.panel).map_or("", |panel| &panel.title);
        let what = format!("{panel}, {}: {} to {}", claim.place, claim.over, claim.under);
        DrawnClaim {
            what,
            paper: claim.paper,
            ours,
            differs,
        }
    });
    Drawn {
        id: figure.id,
        title: figure.title,
        paper: figure.paper,
        differs: figure.differs,
        claims: claims.collect(),
        panels: figure
            .panels
            .iter()
            .map(|panel| draw_panel(panel, kept))
            .collect(),
        failed,
        cells,
    }
}

fn draw_panel(panel: &Panel, kept: &Kept) -> DrawnPanel {
    let mut places: Vec<String> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for point in &panel.points {
        if !places.contains(&point.place) {
            places.push(point.place.clone());
        }
        if !names.contains(&point.series) {
            names.push(point.series.clone());
        }
    }
    let value = |name: &str, place: &str| {
        let point = panel
            .points
            .iter()
            .find(|point| point.series == name && point.place == place)?;
        Summary::of(values(point, kept))
    };
    let series = names.into_iter().map(|name| DrawnSeries {
        values: places.iter().map(|place| value(&name, place)).collect(),
        name,
    });
    let series = series.collect();
    DrawnPanel {
        title: panel.title.clone(),
        unit: panel.unit,
        series,
        places,
        shape: panel.shape,
    }
}

/// A point's value in each round.
fn values(point: &Point, kept: &Kept) -> Vec<f64> {
    let picked = |object: &&Value| {
        let mut fields = point.pick.iter();
        fields.all(|(field, wanted)| object[*field] == wanted.as_str())
    };
    let of = |outcome: &Outcome| match outcome {
        Outcome::Printed(objects) => objects
            .iter()
            .find(picked)
            .and_then(|object| value(object, point.measure)),
        Outcome::Failed(_) => None,
    };
    kept.outcomes(&point.cell).filter_map(of).collect()
}

fn value(object: &Value, measure: Measure) -> Option<f64> {
    match measure {
        Measure::Mops => object["mops"].as_f64(),
        Measure::MicrosPerOp => Some(object["seconds"].as_f64()? * 1e6 / object["ops"].as_f64()?),
        Measure::Field(field) => object[field].as_f64(),
        Measure::Path(path) => path.iter().fold(object, |object, field| &object[*field]).as_f64(),
        Measure::Micros(field) => Some(object[field].as_f64()? / 1e3),
    }
}

/// The commit of the directory that this runs in, if it is of a checkout.
fn commit() -> String {
    let output = std::process::Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output();
    match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => "unknown".into(),
    }
}

/// The date in UTC.
fn today() -> String {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    date(since.as_secs() / 86_400)
}

/// The date so many days after the first of January 1970 (years of 400-year eras, beginning in March).
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

impl DrawnPanel {
    fn plot(&self) -> String {
        let series: Vec<Series> = self
            .series
            .iter()
            .map(|one| Series {
                name: one.name.clone(),
                values: one.values.clone(),
            })
            .collect();
        svg::plot(self.shape, self.unit, &self.places, &series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Days are dates, leap days among them.
    #[test]
    fn dates() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_778, "2026-11-21"),
        ] {
            assert_eq!(date(days), expected);
        }
    }

    /// Numbers are found where the runs put them.
    #[test]
    fn measures() {
        let object = serde_json::json!({
            "mops": 2.0, "seconds": 3.0, "ops": 1_000_000, "p99_ns": 1500, "persists_per_op": {"log": {"fences": 0.5}}
        });
        assert_eq!(value(&object, Measure::Mops), Some(2.0));
        assert_eq!(value(&object, Measure::MicrosPerOp), Some(3.0));
        assert_eq!(value(&object, Measure::Micros("p99_ns")), Some(1.5));
        assert_eq!(
            value(&object, Measure::Path(&["persists_per_op", "log", "fences"])),
            Some(0.5)
        );
        assert_eq!(value(&object, Measure::Field("nothing")), None);
    }
}

//! `torture` with few dependencies, so that it rebuilds in seconds. `broken/run.py` runs it.
//!
//! Takes the arguments of `wollemi-lab torture` that choose histories, and one target: an index that is not an
//! ablation, `heap`, `log`, with the feature `listed` also `kv` and `disk`, and with `items` also `items`. It does not
//! shrink failures. Its last line has the number of histories and states. Exit code 0 if it found no failure, 1 if it
//! found one, 2 if the arguments are wrong.

use crashkit::blobs::{self, Blobs};
use crashkit::{Crash, Explorer, History, MemoryModel, Mode, Settings, Subject};
use index::{Index, OnHeap};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wollemi_torture::bounds::{Bounds, Report};
use wollemi_torture::map::OfIndex;
use wollemi_torture::{history, log};

/// The root's name. It is too long to share a line with the root's link.
const ROOT: &[u8] = &[b'r'; 100];

/// Which histories to explore.
struct Args {
    index: String,
    ops: usize,
    threads: u32,
    mode: Mode,
    aimed: u32,
    budget: Duration,
    states: u64,
    histories: u64,
    seed: u64,
    history: Option<u64>,
}

impl Args {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
        let mut args = Args {
            index: "roart".into(),
            ops: 100,
            threads: 0,
            mode: Mode::Power,
            aimed: 8,
            budget: Duration::from_secs(60),
            states: u64::MAX,
            histories: u64::MAX,
            seed: 1,
            history: None,
        };
        while let Some(name) = words.next() {
            let word = words.next().ok_or_else(|| format!("{name} needs a value"))?;
            let number = || {
                word.parse::<u64>()
                    .map_err(|error| format!("{name} {word}: {error}"))
            };
            match name.as_str() {
                "--index" => args.index = word,
                "--ops" => args.ops = number()? as usize,
                "--threads" => args.threads = number()? as u32,
                "--model" => args.mode = mode(&word)?,
                "--aimed" => args.aimed = number()? as u32,
                "--budget" => args.budget = time(&word)?,
                "--states" => args.states = number()?,
                "--histories" => args.histories = number()?,
                "--seed" => args.seed = number()?,
                "--history" => args.history = Some(number()?),
                _ => return Err(format!("unknown argument {name}")),
            }
        }
        Ok(args)
    }

    fn nth<Op>(&self, number: u64, history: &impl Fn(u64, usize, u32) -> History<Op>) -> History<Op> {
        let threads = match self.threads {
            0 => 1 + (number % 4) as u32,
            threads => threads,
        };
        history(self.seed.wrapping_add(number), self.ops, threads)
    }

    /// Explores the histories. Returns whether one failed.
    fn run<S: Subject>(
        &self,
        subject: S,
        history: impl Fn(u64, usize, u32) -> History<S::Op>,
    ) -> Result<bool, String> {
        let settings = Settings {
            model: MemoryModel::from(self.mode),
            seed: self.seed,
            aimed: self.aimed,
            ..Settings::default()
        };
        let mut explorer = Explorer::new(subject, settings)?;
        let end = Instant::now() + self.budget;
        explorer.stop_at(end);
        let numbers = match self.history {
            Some(seed) => seed.wrapping_sub(self.seed)..=seed.wrapping_sub(self.seed),
            None => 0..=self.histories.saturating_sub(1),
        };
        let mut found = None;
        for number in numbers {
            if Instant::now() >= end || explorer.report().states >= self.states || found.is_some() {
                break;
            }
            found = explorer.explore(&self.nth(number, &history)).err();
        }
        if let Some(failure) = &found {
            println!("{failure}");
        }
        let report = explorer.report();
        println!("{} histories, {} states", report.histories, report.states);
        Ok(found.is_some())
    }
}

fn mode(word: &str) -> Result<Mode, String> {
    match word {
        "power" => Ok(Mode::Power),
        "word" => Ok(Mode::Word),
        "process" => Ok(Mode::Process),
        _ => Err(format!("unknown model {word}")),
    }
}

fn time(word: &str) -> Result<Duration, String> {
    let seconds = word.strip_suffix('s').and_then(|digits| digits.parse().ok());
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| format!("not a time such as 60s: {word}"))
}

fn of<I: OnHeap<Media = Crash> + Index + 'static>(name: &str) -> OfIndex {
    OfIndex::new(
        name,
        |heap| Ok(Box::new(I::create(heap, ROOT)?)),
        |heap| Ok(I::open(heap, ROOT)?.map(|index| Box::new(index) as Box<dyn Index>)),
        vec![I::tracer()],
    )
}

fn run(args: &Args) -> Result<bool, String> {
    match args.index.as_str() {
        "heap" => args.run(Blobs, blobs::history),
        #[cfg(feature = "listed")]
        name if name == "kv" || name.starts_with("kv:") => args.run(
            wollemi_torture::batches::Batches::named(name)?,
            wollemi_torture::batches::history,
        ),
        #[cfg(feature = "items")]
        "items" => args.run(
            wollemi_torture::items::Items::default(),
            wollemi_torture::items::history,
        ),
        "roart" => args.run(of::<roart::Roart<Crash, roart::Full>>("roart"), history::of_map),
        "part" => args.run(of::<recipe::part::Part<Crash>>("part"), history::of_map),
        "clht" => args.run(of::<recipe::clht::Clht<Crash>>("clht"), history::of_map),
        "hot" => args.run(of::<recipe::hot::Hot<Crash>>("hot"), history::of_map),
        "masstree" => args.run(of::<recipe::Masstree<Crash>>("masstree"), history::of_map),
        "bwtree" => args.run(of::<recipe::BwTree<Crash>>("bwtree"), history::of_map),
        "bwtree-small" => args.run(of::<recipe::BwTree<Crash, 8>>("bwtree-small"), history::of_map),
        "wort" => args.run(of::<wort::wort::Wort<Crash>>("wort"), history::of_map),
        "woart" => args.run(of::<wort::woart::Woart<Crash>>("woart"), history::of_map),
        "art-cow" => args.run(of::<wort::art_cow::ArtCow<Crash>>("art-cow"), history::of_map),
        "dptree" => args.run(of::<dptree::DpTree<Crash>>("dptree"), history::of_map),
        "log" => Ok(run_files(args, log::torture)),
        #[cfg(feature = "listed")]
        "disk" => Ok(run_files(args, wollemi_torture::disk::torture)),
        name => Err(format!("unknown index {name}")),
    }
}

/// Tortures the log of level `disk`, or the database of that level. Returns whether a history failed.
fn run_files(args: &Args, torture: fn(&Bounds) -> Result<Report, String>) -> bool {
    let bounds = Bounds {
        seed: args.history.unwrap_or(args.seed),
        histories: args.history.map_or(args.histories, |_| 1),
        states: args.states,
        budget: args.budget,
        ..Bounds::default()
    };
    let tortured = torture(&bounds);
    match &tortured {
        Ok(report) => println!(
            "{report}\n{} histories, {} states",
            report.histories, report.states
        ),
        Err(failure) => println!("{failure}\n1 histories, 1 states"),
    }
    tortured.is_err()
}

fn main() -> ExitCode {
    crashkit::silence_findings();
    match Args::parse(std::env::args().skip(1)).and_then(|args| run(&args)) {
        Ok(found) => ExitCode::from(u8::from(found)),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

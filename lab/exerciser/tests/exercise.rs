//! Calls the public functions of the database's main types (`TYPES`, except those `LEFT_OUT`), from several threads,
//! over every index: a short run of `exercise`.
//!
//! Started with `be-killed` and the description of a round, this is the process that the test kills; otherwise it is
//! the test.

mod common;

use common::{child, number, run_as_child};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wollemi::IndexKind;
use wollemi_exerciser::{Settings, run};

/// Maximum number of runs until every function was called; a slow machine makes more runs, of fewer calls each.
const RUNS: u64 = 6;

/// No further run begins after this time, except the first `RUNS`.
const PATIENCE: Duration = Duration::from_secs(600);

/// Public functions of the database that no call uses, with the reasons.
const LEFT_OUT: [(&str, &str); 16] = [
    ("Db::abandon", "for pools that the caller removes"),
    ("Db::hold", "for tests alone (feature `doubles`)"),
    ("Db::before_commits", "the same"),
    ("Options::create_on_disk", "the same"),
    (
        "Db::commit",
        "commits an overlay: `exercise --server` calls it, by `MULTI` and `MSET`",
    ),
    (
        "Db::build_map",
        "`Db::restore` and `Db::copy_from` build every map this way",
    ),
    ("Db::build_map_with", "the same"),
    (
        "Map::sweep",
        "`exercise --server` calls it, and `Expiring::sweep` does",
    ),
    ("Db::open", "`Options::open` with the defaults"),
    (
        "Options::anonymous",
        "anonymous memory cannot be reopened; `Db::anonymous` is this with the defaults",
    ),
    ("Options::open_on", "for media other than the machine's own"),
    ("Options::anonymous_on", "the same"),
    (
        "Options::open_pool",
        "for pools in memory, such as the crash kit's",
    ),
    ("HeapCheck::is_clean", "a part of `Check::is_clean`"),
    (
        "Retry::pause",
        "sets the pause between tries, and changes no answer",
    ),
    ("Retry::longest_pause", "the same"),
];

/// The types all of whose public functions must be called, except those `LEFT_OUT`. The test does not look at views and
/// watches of expiring and typed maps, overlays, turns, cursors, and the kinds of indexes.
const TYPES: [&str; 15] = [
    "Batch",
    "Check",
    "Db",
    "Expiring",
    "HeapCheck",
    "Map",
    "Options",
    "Reader",
    "Retry",
    "Snapshot",
    "Sweeper",
    "Transaction",
    "TypedMap",
    "View",
    "Watch",
];

/// Returns the public functions in the sources of the database, such as `Map::get`.
fn public_functions() -> BTreeSet<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/wollemi/src");
    let mut names = BTreeSet::new();
    let mut directories = vec![sources];
    while let Some(directory) = directories.pop() {
        for file in std::fs::read_dir(directory).expect("the sources of the database") {
            let path = file.expect("a file").path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let text = std::fs::read_to_string(path).expect("text");
            let mut of = String::new();
            for line in text.lines() {
                if let Some(rest) = line.strip_prefix("impl") {
                    // The type follows the parameters in angle brackets.
                    let mut depth = 0;
                    let after = rest.find(|letter| {
                        depth += i32::from(letter == '<') - i32::from(letter == '>');
                        letter == ' ' && depth == 0
                    });
                    let rest = rest[after.unwrap_or(0)..].trim_start();
                    of = rest
                        .chars()
                        .take_while(|letter| letter.is_alphanumeric())
                        .collect();
                }
                let Some(rest) = line.strip_prefix("    pub fn ") else {
                    continue;
                };
                if TYPES.contains(&&*of) {
                    let name: String = rest
                        .chars()
                        .take_while(|&letter| letter.is_alphanumeric() || letter == '_')
                        .collect();
                    names.insert(format!("{of}::{name}"));
                }
            }
        }
    }
    names
}

/// Returns the functions that no call has used and [`LEFT_OUT`] does not list.
fn missing(called: &BTreeSet<&str>) -> Vec<String> {
    let all = public_functions();
    assert!(
        all.contains("Map::get") && all.len() > 80,
        "the test misreads the sources: {all:?}"
    );
    let gone: Vec<_> = called.iter().filter(|name| !all.contains(**name)).collect();
    assert!(gone.is_empty(), "the database has no functions {gone:?}");
    let left_out = |name: &str| LEFT_OUT.iter().any(|(left_out, _)| *left_out == name);
    all.into_iter()
        .filter(|name| !called.contains(&**name) && !left_out(name))
        .collect()
}

fn main() -> ExitCode {
    if let Some(code) = run_as_child() {
        return code;
    }
    let directory = tempfile::tempdir().expect("a directory for pools");
    let one = std::env::var("WOLLEMI_INDEX").ok();
    let kinds: Vec<IndexKind> = match &one {
        Some(name) => vec![name.parse().expect("the name of an index")],
        None => {
            let all = IndexKind::ALL.iter().copied();
            all.filter(|kind| !kind.is_ablation()).collect()
        }
    };
    let settings = Settings {
        seed: number("WOLLEMI_SEED", 1),
        threads: number("WOLLEMI_THREADS", 0) as usize,
        kinds,
        budget: Duration::from_secs(number("WOLLEMI_SECONDS", 20)),
        calls: number("WOLLEMI_CALLS", 1_500_000),
        directory: directory.path().to_owned(),
        child: Some(child),
        server: std::env::var_os("WOLLEMI_SERVER").map(Into::into),
        openings: false,
        hot: false,
    };
    let (mut called, mut indexes, mut kills, mut refused) = (BTreeSet::new(), BTreeMap::new(), 0, 0);
    let (started, mut calls) = (Instant::now(), 0);
    // A single run may miss rare calls.
    for turn in 0.. {
        let is_enough = calls >= settings.calls.saturating_mul(RUNS) || started.elapsed() >= PATIENCE;
        if turn >= RUNS && is_enough {
            break;
        }
        let settings = Settings {
            seed: settings.seed + 1000 * turn,
            ..settings.clone()
        };
        let report = match run(&settings, |_| ()) {
            Ok(report) => report,
            Err(failure) => {
                println!("{failure}");
                let _kept = directory.keep();
                return ExitCode::FAILURE;
            }
        };
        println!(
            "seed {}: {} calls, {} pools, {} openings, {} kills",
            settings.seed, report.calls, report.pools, report.openings, report.kills
        );
        called.extend(report.called.iter().map(|(name, _)| name));
        for (index, calls) in report.indexes.iter() {
            *indexes.entry(index).or_insert(0) += calls;
        }
        calls += report.calls;
        kills += report.kills;
        refused += report.refused;
        let all = settings
            .kinds
            .iter()
            .all(|kind| indexes.contains_key(kind.name()));
        let is_part = settings.server.is_some() || one.is_some();
        if is_part || missing(&called).is_empty() && all && kills > 0 && refused > 0 {
            println!("calls by index: {indexes:?}");
            return ExitCode::SUCCESS;
        }
    }
    println!(
        "too little was exercised: {kills} kills, {refused} refusals; calls by index: {indexes:?}; no call uses {:?}",
        missing(&called)
    );
    ExitCode::FAILURE
}

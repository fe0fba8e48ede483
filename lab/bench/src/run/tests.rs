//! `bench run` reports the operations that it ran.

mod counts;

use super::*;
use crate::workload;
use clap::{Parser, ValueEnum};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: RunArgs,
}

fn args_of(line: &str) -> RunArgs {
    Line::try_parse_from(["run"].into_iter().chain(line.split_whitespace()))
        .unwrap()
        .args
}

fn report_of(line: &str) -> Report {
    let mut reports = reports(&args_of(line)).unwrap();
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

/// Every index runs every workload, with correct results.
#[test]
fn every_index_does_every_workload() {
    for index in IndexKind::ALL {
        for workload in workload::ALL
            .iter()
            .filter(|workload| index.is_ordered() || !workload.scans_keys())
        {
            let line = format!("--index {index} --workload {workload} --keys 1500 --threads 2 --no-counts");
            let report = report_of(&line);
            assert_eq!(report.ops, workload.default_ops(1500) as u64, "{line}");
            assert!(report.mops > 0.0, "{line}");
            assert!(
                report.p50_ns <= report.p90_ns && report.p90_ns <= report.p99_ns,
                "{line}"
            );
            assert!(
                report.p99_ns <= report.p999_ns && report.p999_ns <= report.max_ns.max(report.p999_ns),
                "{line}"
            );
            assert!(report.bytes_per_key >= report.live_bytes_per_key, "{line}");
            assert!(report.live_bytes_per_key >= 12.0, "{line}");
            assert_eq!(report.write_backs_per_op, None, "{line}");
            assert!(report.timeline.ops.iter().sum::<u64>() >= report.ops, "{line}");
        }
    }
}

/// Every index supports every kind of keys, in every distribution.
#[test]
fn every_index_takes_every_kind_of_keys() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        (0..2000).map(|i| format!("line {i}\n")).collect::<String>(),
    )
    .unwrap();
    for index in IndexKind::ALL {
        for kind in KeyKind::value_variants() {
            for distribution in Distribution::value_variants() {
                let (kind, distribution) = (crate::name(*kind), crate::name(*distribution));
                let from = match kind.as_str() {
                    "file" => format!("--keys-from {}", file.path().display()),
                    _ => String::new(),
                };
                let scan = if index.is_ordered() { "scan100" } else { "update" };
                let line = format!(
                    "--index {index} --workload ycsb-d,{scan},multi_get,remove --keys 500 --key-kind {kind} {from} \
                     --distribution {distribution} --theta 1.2 --scan-length 1..9 --no-counts"
                );
                let reports = reports(&args_of(&line)).unwrap_or_else(|error| panic!("{line}: {error}"));
                assert_eq!(reports.len(), 4, "{line}");
            }
        }
    }
}

/// Workloads in an impossible order are rejected.
#[test]
fn phases_that_cannot_be_are_refused() {
    for workloads in ["get,load", "remove,get"] {
        let args = args_of(&format!("--workload {workloads} --keys 100"));
        assert!(matches!(reports(&args), Err(Error::Workloads(_))), "{workloads}");
    }
}

/// Options that would be ignored or mean nothing are rejected; `--keys-from` implies the kind of keys.
#[test]
fn options_that_do_not_go_together_are_refused() {
    let parsed =
        |line: &str| Line::try_parse_from(["run", "--workload", "get"].into_iter().chain(line.split(' ')));
    for line in [
        "--keys-from /keys --key-kind u64",
        "--delay optane",
        "--delay optane --media native",
    ] {
        let args = parsed(line).unwrap().args;
        assert!(matches!(reports(&args), Err(Error::Options(_))), "{line}");
    }
    for line in ["--limit --rate 1000", "--key-kind file"] {
        assert!(parsed(line).is_err(), "{line}");
    }
    for (line, kind) in [("--keys-from /keys", KeyKind::File), ("--keys 1", KeyKind::U64)] {
        assert_eq!(parsed(line).unwrap().args.key_kind, kind, "{line}");
    }
    let default = parsed("--media delay").unwrap().args.delay();
    assert_eq!(default, Some(Delay::default()));
}

/// An open loop runs exactly the operations due; a timed run continues until the time is over.
#[test]
fn loops_end_when_they_should() {
    let report = report_of("--workload get --keys 1000 --seconds 0.2 --rate 2000 --no-counts");
    assert_eq!(report.ops, 400);
    assert_eq!(report.rate, Some(2000.0));
    let report = report_of("--workload get --keys 1000 --ops 300 --rate 2000 --no-counts");
    assert!(report.ops == 300 && report.seconds >= 0.149, "{}", report.seconds);
    let report = report_of("--workload ycsb-a --keys 100 --seconds 0.1 --warm-up 50 --no-counts");
    assert!(report.seconds >= 0.1, "{}", report.seconds);
    // Inserts are not repeated.
    let report = report_of("--workload insert --keys 100 --ops 30 --seconds 10 --no-counts");
    assert_eq!(report.ops, 30);
}

/// Absent keys are absent for every kind of keys, also after inserts; looking them up persists nothing.
#[test]
fn absent_keys_are_absent() {
    for kind in ["u64", "str", "dense", "sparse", "clustered"] {
        let line = format!(
            "--workload load,insert,get-absent,get --keys 1500 --threads 2 --key-kind {kind} --limit"
        );
        let reports = reports(&args_of(&line)).unwrap();
        assert_eq!(reports[2].ops, 1500, "{kind}");
        assert_eq!(reports[2].write_backs_per_op, Some(0.0), "{kind}");
        assert!(reports[2].limit.is_some(), "{kind}");
    }
}

/// A report names its media and their caveat; the machine itself has none.
#[test]
fn media_say_what_they_do_not_show() {
    for (media, caveat) in [
        ("native", None),
        ("process", Some("not power loss")),
        ("counting", Some("slows")),
        ("delay --delay wort-300", Some("write latency at the fence only")),
    ] {
        let report = report_of(&format!("--workload load --keys 100 --no-counts --media {media}"));
        assert_eq!(
            report.delay.as_deref(),
            media.split_once(" --delay ").map(|(_, delay)| delay)
        );
        let said = report.caveat.zip(caveat);
        assert!(
            said.is_some_and(|(said, caveat)| said.contains(caveat)) || report.caveat == caveat,
            "{media}"
        );
        assert!(report.clock_ns > 0.0, "{media}");
    }
}

/// A pool in a file is measured and removed; an existing file is rejected and left unchanged.
#[test]
fn files_are_made_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pool");
    let line = format!("--workload get --keys 1000 --no-counts --pool {}", path.display());
    let report = report_of(&line);
    assert_eq!(report.pool, path.display().to_string());
    assert_eq!(report.file_system, crate::machine::file_system(&path));
    assert!(!path.exists());

    std::fs::write(&path, "mine").unwrap();
    assert!(reports(&args_of(&line)).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

/// Each workload is calibrated before and after, over at least as many bytes as its keys use; no file is left behind.
#[test]
fn every_workload_is_calibrated() {
    let directory = tempfile::tempdir().unwrap();
    let pool = directory.path().join("pool");
    let line = format!(
        "--workload load,get,remove --keys 20k --no-counts --pool {}",
        pool.display()
    );
    let mut before = None;
    for report in reports(&args_of(&line)).unwrap() {
        let pace = report.pace.unwrap();
        // One calibration serves as the end of a workload and the beginning of the next.
        assert_eq!(*before.get_or_insert(pace.before), pace.before);
        before = Some(pace.after);
        assert_eq!(pace.footprint, 20_000 * 32 * 64);
        for misses in [pace.before, pace.after] {
            assert!(misses.dependent_ns > 0.0 && misses.parallel_ns > 0.0);
        }
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Lookups are compared with the limits of the memory; the cold lines are among those on the path.
#[test]
fn lookups_have_a_limit() {
    let line = "--workload load,get,scan100 --keys 100k --limit --no-counts";
    let reports = reports(&args_of(line)).unwrap();
    assert!(reports[0].limit.is_none() && reports[2].limit.is_none());
    let limit = reports[1].limit.as_ref().unwrap();
    assert!(1.0 <= limit.path.lines && 0.0 <= limit.path.cold && limit.path.cold <= limit.path.lines);
    assert!(limit.pace.footprint >= 1 << 20 && limit.of_overlapped > 0.0);
    assert_eq!(limit.cached.is_some(), crate::machine::cache(3).is_some());
}

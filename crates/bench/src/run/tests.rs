//! That what `bench run` reports is what was done.

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: RunArgs,
}

fn report_of(line: &str) -> Report {
    let line = Line::try_parse_from(["run"].into_iter().chain(line.split_whitespace())).unwrap();
    report(&line.args).unwrap()
}

/// Every index does every workload on every kind of keys, and finds what it should.
#[test]
fn every_index_does_every_workload() {
    for index in IndexKind::ALL {
        for workload in Workload::value_variants() {
            for kind in KeyKind::value_variants() {
                let workload = crate::name(*workload);
                let line = format!(
                    "--index {index} --workload {workload} --keys 3000 --key-kind {} --threads 2 --no-counts",
                    crate::name(*kind)
                );
                let report = report_of(&line);
                assert_eq!(
                    report.ops,
                    if workload == "scan100" { 60 } else { 3000 },
                    "{line}"
                );
                assert!(report.mops > 0.0 && report.p50_ns <= report.p99_ns, "{line}");
                assert!(report.bytes_per_key >= report.live_bytes_per_key, "{line}");
                assert!(report.live_bytes_per_key >= 12.0, "{line}");
                assert_eq!(report.write_backs_per_op, None, "{line}");
            }
        }
    }
}

/// Writes persist something and fence it; reads of what is durable do neither.
#[test]
fn counts_are_of_the_workload_alone() {
    for workload in ["load", "update", "remove"] {
        let report = report_of(&format!("--workload {workload} --keys 2000"));
        let write_backs = report.write_backs_per_op.unwrap() + report.non_temporal_per_op.unwrap();
        assert!(
            write_backs >= 1.0,
            "{workload}: {write_backs} write-backs an operation"
        );
        assert!(
            report.fences_per_op >= Some(1.0),
            "{workload}: {:?} fences an operation",
            report.fences_per_op
        );
    }
    for workload in ["get", "multi_get", "scan100"] {
        let report = report_of(&format!("--workload {workload} --keys 2000"));
        assert_eq!(
            (report.write_backs_per_op, report.fences_per_op),
            (Some(0.0), Some(0.0)),
            "{workload}"
        );
    }
}

/// The counts are the same whether counting is what is timed or done apart, on whatever media.
#[test]
fn media_count_alike() {
    let counts = ["native", "counting", "delay"].map(|media| {
        let report = report_of(&format!("--workload load --keys 2000 --media {media}"));
        (report.write_backs_per_op, report.fences_per_op)
    });
    assert_eq!(counts[0], counts[1]);
    assert_eq!(counts[0], counts[2]);
}

/// A pool in a file is measured and removed; a file that exists is refused and stays.
#[test]
fn files_are_made_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pool");
    let line = format!("--workload get --keys 1000 --no-counts --pool {}", path.display());
    assert_eq!(report_of(&line).pool, path.display().to_string());
    assert!(!path.exists());

    std::fs::write(&path, "mine").unwrap();
    let line = Line::try_parse_from(["run"].into_iter().chain(line.split_whitespace())).unwrap();
    assert!(report(&line.args).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

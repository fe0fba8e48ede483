//! Counts match the workloads' operations and the papers' counts.

use super::*;

/// Writes need write-backs and fences; reads of durable keys need neither.
#[test]
fn counts_are_of_the_workload_alone() {
    for workload in ["load", "update", "remove"] {
        let report = report_of(&format!("--workload {workload} --keys 2000"));
        let write_backs = report.write_backs_per_op.unwrap() + report.non_temporal_per_op.unwrap();
        assert!(
            write_backs >= 1.0,
            "{workload}: {write_backs} write-backs per operation"
        );
        assert!(
            report.fences_per_op >= Some(1.0),
            "{workload}: {:?} fences per operation",
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

/// The counts of nodes, allocation and log sum to the totals. Every stored byte is written back for one of them: at the
/// end of a workload nothing awaits a fence.
#[test]
fn purposes_add_up() {
    for index in IndexKind::ALL {
        let line =
            format!("--index {index} --workload load,insert,update,get,remove --keys 1000 --key-kind str");
        let args = args_of(&line);
        let input = &Input::new(&args).unwrap();
        for phase in args.counted(&Place::Anonymous, input, None).unwrap().phases {
            let counts = phase.counts;
            let bytes = counts.node.bytes + counts.alloc.bytes + counts.log.bytes;
            assert_eq!(bytes, counts.bytes, "{index}: {}", phase.workload);
        }
        for report in reports(&args).unwrap() {
            let split = report.persists_per_op.as_ref().unwrap();
            let purposes = [&split.node, &split.alloc, &split.log];
            let sums = [
                purposes.iter().map(|one| one.write_backs).sum::<f64>(),
                purposes.iter().map(|one| one.fences).sum(),
                purposes.iter().map(|one| one.lines).sum(),
                purposes.iter().map(|one| one.blocks).sum(),
                purposes.iter().map(|one| one.bytes).sum(),
            ];
            let all = [
                report.write_backs_per_op,
                report.fences_per_op,
                report.lines_per_op,
                report.blocks_per_op,
                report.bytes_per_op,
            ];
            for (sum, all) in sums.into_iter().zip(all) {
                // The divisions round.
                assert!((sum - all.unwrap()).abs() < 1e-9, "{line}: {sum}, {all:?}");
            }
        }
    }
}

/// Updates of eight-byte values cost one write-back and one fence, as in the crates' own tests.
#[test]
fn updates_in_place_cost_one_write_back_and_one_fence() {
    for index in ["roart", "part", "wort", "woart", "art-cow"] {
        let report = report_of(&format!(
            "--index {index} --workload update --keys 2000 --key-kind u64"
        ));
        assert_eq!(
            (report.write_backs_per_op, report.fences_per_op),
            (Some(1.0), Some(1.0)),
            "{index}"
        );
    }
}

/// Inserts into WORT cost two write-backs each, and three for the lines of each node, as in its own tests. Dense keys
/// create nodes on the last four levels of half-bytes, where all but the highest have 16 children; sparse keys create
/// nodes on the first four, of which the lowest have 8.
#[test]
fn wort_writes_back_a_leaf_a_slot_and_new_nodes() {
    const KEYS: f64 = (1u64 << 15) as f64;
    for (kind, nodes, paper) in [
        ("dense", 1 + 8 + 128 + 2048, 2.2),
        ("sparse", 1 + 16 + 256 + 4096, 2.4),
    ] {
        let report = report_of(&format!(
            "--index wort --workload load --keys {KEYS} --key-kind {kind}"
        ));
        let found = report.persists_per_op.unwrap().node;
        let expected = 2.0 + 3.0 * f64::from(nodes) / KEYS;
        assert_eq!((found.write_backs, found.fences), (expected, 2.0), "{kind}");
        assert!((expected - paper).abs() < 0.01, "{kind}: {expected}");
    }
}

/// Writes that DPTree has buffered count for the workload that made them: every pair has reached a leaf.
#[test]
fn gathered_writes_are_counted() {
    let report = report_of("--index dptree --workload load --keys 1000");
    let node = report.persists_per_op.unwrap().node;
    assert!(node.bytes >= 16.0, "{node:?}");
}

/// Counts are the same on all media, whether counted in the timed run or in a separate one.
#[test]
fn media_count_alike() {
    let counts = ["native", "counting", "delay"].map(|media| {
        let report = report_of(&format!("--workload load --keys 2000 --media {media}"));
        (report.write_backs_per_op, report.fences_per_op)
    });
    assert_eq!(counts[0], counts[1]);
    assert_eq!(counts[0], counts[2]);
}

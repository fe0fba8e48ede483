//! The reports of a run for people: a table with a row a workload, and below it what the rows have in common and what not
//! every row has.

use super::report::{HardwarePerOp, PersistsPerOp, Report, Split};
use crate::machine::HugePages;
use crate::table;

const HEADER: [&str; 13] = [
    "workload", "ops", "Mops/s", "p50 ns", "p90 ns", "p99 ns", "p99.9 ns", "max ns", "wb/op", "fence/op",
    "line/op", "block/op", "B/op",
];

fn row(report: &Report) -> Vec<String> {
    let per_op = |count: Option<f64>| count.map_or("-".into(), |count| format!("{count:.2}"));
    vec![
        report.workload.name.to_owned(),
        report.ops.to_string(),
        format!("{:.3}", report.mops),
        report.p50_ns.to_string(),
        report.p90_ns.to_string(),
        report.p99_ns.to_string(),
        report.p999_ns.to_string(),
        report.max_ns.to_string(),
        per_op(report.write_backs_per_op),
        per_op(report.fences_per_op),
        per_op(report.lines_per_op),
        per_op(report.blocks_per_op),
        report
            .bytes_per_op
            .map_or("-".into(), |bytes| format!("{bytes:.1}")),
    ]
}

/// What of an operation's persists was for what; nothing where there were none.
fn purposes(split: &Split) -> Option<String> {
    let purposes = [
        ("nodes", &split.node),
        ("allocation", &split.alloc),
        ("log", &split.log),
    ];
    let said: Vec<String> = purposes
        .into_iter()
        .filter(|(_, persists)| **persists != PersistsPerOp::default())
        .map(|(purpose, persists)| {
            let PersistsPerOp {
                write_backs,
                fences,
                lines,
                blocks,
                bytes,
            } = persists;
            format!("{purpose} {write_backs:.2} wb {fences:.2} fence {lines:.2} line {blocks:.2} block {bytes:.1} B")
        })
        .collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// What the machine counted of an operation.
fn counters(hardware: &HardwarePerOp) -> String {
    let counters = [
        ("cycles", hardware.cycles),
        ("instructions", hardware.instructions),
        ("cache misses", hardware.cache_misses),
        ("branch misses", hardware.branch_misses),
        ("TLB misses", hardware.tlb_misses),
    ];
    let said = counters
        .into_iter()
        .filter_map(|(what, count)| Some(format!("{:.2} {what}", count?)));
    said.collect::<Vec<_>>().join(", ")
}

/// The table, with the rest below it.
pub fn render(reports: &[Report]) -> String {
    let rows: Vec<Vec<String>> = reports.iter().map(row).collect();
    let mut text = table::render(&HEADER, &rows);
    let Some(last) = reports.last() else {
        return text;
    };
    let HugePages {
        resident_mib,
        huge_mib,
    } = last.huge_page_memory;
    let delay = last
        .delay
        .as_ref()
        .map_or(String::new(), |delay| format!(" ({delay})"));
    let rate = last.rate.map_or(String::new(), |rate| {
        format!(", open loop of {rate} operations a second")
    });
    text += &format!(
        "index {}, {} keys of kind {}, threads: {}{rate}; {:.1} B a key, {:.1} of them in live objects\n",
        last.index,
        last.keys,
        crate::name(last.key_kind),
        last.threads,
        last.bytes_per_key,
        last.live_bytes_per_key,
    );
    text += &format!(
        "pool {}{}, level {}, media {}{delay}, {huge_mib} of {resident_mib} MiB on huge pages\n",
        last.pool,
        (last.file_system.as_ref()).map_or(String::new(), |kind| format!(" ({kind})")),
        last.level,
        crate::name(last.media),
    );
    text += &format!(
        "each latency contains a reading of the clock: {:.0} ns\n",
        last.clock_ns
    );
    if let Some(caveat) = last.caveat {
        text += &format!("not shown: {caveat}\n");
    }
    for report in reports {
        let purposes = report.persists_per_op.as_ref().and_then(purposes);
        let counters = report.hardware_per_op.as_ref().map(counters);
        let pace = report.pace.as_ref().map(ToString::to_string);
        let limit = report.limit.as_ref().map(ToString::to_string);
        for line in [purposes, counters, pace, limit].into_iter().flatten() {
            text += &format!("{}: {line}\n", report.workload);
        }
    }
    text += &last.machine.to_string();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Persists are said by what they were for, and only what there was; so are counters.
    #[test]
    fn only_what_there_is_is_said() {
        let some = |write_backs| PersistsPerOp {
            write_backs,
            fences: 1.0,
            ..PersistsPerOp::default()
        };
        let none = PersistsPerOp::default;
        let split = |node, alloc, log| purposes(&Split { node, alloc, log });
        assert_eq!(split(none(), none(), none()), None);
        assert_eq!(
            split(some(2.5), none(), some(1.0)).unwrap(),
            "nodes 2.50 wb 1.00 fence 0.00 line 0.00 block 0.0 B; log 1.00 wb 1.00 fence 0.00 line 0.00 block 0.0 B"
        );
        let hardware = HardwarePerOp {
            instructions: Some(1200.0),
            tlb_misses: Some(0.25),
            ..HardwarePerOp::default()
        };
        assert_eq!(counters(&hardware), "1200.00 instructions, 0.25 TLB misses");
    }
}

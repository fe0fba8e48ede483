//! What ROART plots (FAST 2021, §4.2 to §4.4).

use super::{Figure, MOPS, Maker, Measure, Panel, Scale, chain, shown};
use crate::figures::svg::{Shape, short};
use wollemi::indexes::IndexKind;

/// The paper's ROART.
const WHOLE: &str = "roart-without-inline";

pub fn figures(maker: &Maker) -> Vec<Figure> {
    let four = maker.threads(4);
    let str_more = format!("--key-kind str --threads {four} --no-counts");
    let u64_more = format!("--key-kind u64 --threads {four} --no-counts");
    let micro = &["get", "insert", "update", "scan100", "remove"];
    // The paper's whole first, which all others are set in ratio to.
    let family = || {
        let mut family: Vec<IndexKind> = IndexKind::ALL.to_vec();
        family.retain(|index| index.name().starts_with("roart"));
        family.sort_by_key(|index| index.name() != WHOLE);
        family.into_iter()
    };
    // Techniques are worth less than what two runs differ by: more runs, of fewer keys.
    let (part, runs) = match maker.scale {
        Scale::Laptop => (2, 4),
        Scale::Smoke | Scale::Paper => (1, 1),
    };
    let ablated = Maker {
        keys: maker.keys / part,
        ..*maker
    };
    let title = format!("one thread, {} keys", short(ablated.keys as f64));
    let ablation = ablated.throughputs(&title, family(), micro, "--key-kind str --no-counts");
    let shown_and = |name: &'static str| {
        let wanted = [WHOLE, name];
        IndexKind::ALL
            .iter()
            .copied()
            .filter(move |index| wanted.contains(&index.name()) || !index.is_ablation())
            .filter(|index| index.is_ordered())
    };
    let lengths: Vec<(String, String)> = ["10", "50", "100", "200", "400"]
        .map(|length| {
            let more = format!(
                "--keys {} --key-kind str --scan-length {length} --no-counts",
                maker.keys
            );
            (length.to_owned(), more)
        })
        .into();
    let thetas: Vec<(String, String)> = ["0.5", "0.7", "0.85", "0.99"]
        .map(|theta| {
            let threads = maker.threads(16);
            let more = format!(
                "--keys {} --key-kind str --theta {theta} --threads {threads} --no-counts",
                maker.keys
            );
            (theta.to_owned(), more)
        })
        .into();
    let latency = format!("--key-kind str --threads {} --no-counts", maker.threads(16));
    let latencies =
        |title: &str, measure| maker.workloads(title, shown(), &["roart-a"], &latency, "µs", measure);
    vec![
        maker.figure(
            "roart-14",
            maker.throughputs("operations", shown(), micro, &str_more),
        ),
        maker.figure(
            "roart-15",
            maker.throughputs(
                "workloads",
                shown(),
                &["roart-a", "roart-b", "roart-c", "roart-d", "roart-e"],
                &str_more,
            ),
        ),
        maker.figure(
            "roart-16",
            chain(
                ablation
                    .into_iter()
                    .map(|panel| Panel { runs, ..panel })
                    .collect(),
                [
                    ablated.workloads(
                        "write-backs an insert and a removal",
                        family(),
                        &["insert", "remove"],
                        "--key-kind str",
                        "per operation",
                        Measure::Field("write_backs_per_op"),
                    ),
                    ablated.workloads(
                        "fences an insert and a removal",
                        family(),
                        &["insert", "remove"],
                        "--key-kind str",
                        "per operation",
                        Measure::Field("fences_per_op"),
                    ),
                ],
            ),
        ),
        maker.figure(
            "roart-17",
            vec![
                maker
                    .over(
                        "scans",
                        Shape::Lines,
                        shown_and("roart-without-lc"),
                        "scan100",
                        &lengths,
                        MOPS,
                    )
                    .along("keys a scan"),
            ],
        ),
        maker.figure(
            "roart-18",
            maker.throughputs("operations", shown(), micro, &u64_more),
        ),
        maker.figure(
            "roart-19",
            vec![
                maker
                    .over("by exponent", Shape::Lines, shown(), "roart-skew", &thetas, MOPS)
                    .along("exponent of the zipfian distribution"),
            ],
        ),
        maker.figure(
            "roart-table-5",
            vec![
                latencies("mean", Measure::Micros("mean_ns")),
                latencies("99th percentile", Measure::Micros("p99_ns")),
                latencies("99.9th percentile", Measure::Micros("p999_ns")),
            ],
        ),
        maker.figure(
            "roart-20",
            vec![maker.over(
                "reserved bytes a key",
                Shape::Lines,
                shown_and("roart-without-sizes"),
                "load",
                &maker.sizes("--key-kind str --no-counts"),
                ("bytes a key", Measure::Field("bytes_per_key")),
            )],
        ),
        maker.figure(
            "roart-21",
            vec![
                maker.openings("until the first answer", "first_get_ms"),
                maker.openings("until all that a crash left is reclaimed", "recovered_ms"),
                maker.recoveries(
                    IndexKind::Roart,
                    "until ROART has reclaimed it, by threads",
                    "recovered_ms",
                ),
                maker.calls_beside_recovery(
                    IndexKind::Roart,
                    "ROART's lookups and updates in turn while its threads reclaim",
                ),
            ],
        ),
        maker.figure("roart-22", vec![maker.allocators()]),
    ]
}

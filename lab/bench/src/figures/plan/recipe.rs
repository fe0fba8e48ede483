//! What RECIPE plots (SOSP 2019, §7).

use super::{CACHE_MISSES, Figure, MOPS, Maker, Measure, chain, shown};
use wollemi::indexes::IndexKind;

pub fn figures(maker: &Maker) -> Vec<Figure> {
    let threads = maker.threads(16);
    let ycsb = &["recipe-load-a", "recipe-a", "recipe-b", "recipe-c", "recipe-e"];
    let more = |kind: &str| format!("--key-kind {kind} --threads {threads} --no-counts");
    let mut times = maker.throughputs("(a) integer keys", shown(), ycsb, &more("u64"));
    times.extend(maker.throughputs("(b) string keys", shown(), ycsb, &more("ycsb")));
    let counts = |title: &str, kind: &str, field| {
        let more = format!("--key-kind {kind}");
        maker.workloads(
            title,
            shown(),
            &["load"],
            &more,
            "per insert",
            Measure::Field(field),
        )
    };
    let misses = |title: &str, kind: &str| {
        maker.workloads(title, shown(), ycsb, &more(kind), "per operation", CACHE_MISSES.1)
    };
    vec![
        maker.figure(
            "recipe-4",
            chain(
                times,
                [
                    counts(
                        "(c) write-backs an insert, integer keys",
                        "u64",
                        "write_backs_per_op",
                    ),
                    counts("(c) fences an insert, integer keys", "u64", "fences_per_op"),
                    counts(
                        "(d) write-backs an insert, string keys",
                        "ycsb",
                        "write_backs_per_op",
                    ),
                    counts("(d) fences an insert, string keys", "ycsb", "fences_per_op"),
                    misses("(c) cache misses an operation, integer keys", "u64"),
                    misses("(d) cache misses an operation, string keys", "ycsb"),
                ],
            ),
        ),
        maker.figure(
            "recipe-5",
            vec![
                maker.workloads(
                    "integer keys, for the tables among the indexes",
                    IndexKind::ALL
                        .iter()
                        .copied()
                        .filter(|index| index.name().contains("clht")),
                    &ycsb[..4],
                    &more("u64"),
                    MOPS.0,
                    MOPS.1,
                ),
            ],
        ),
    ]
}

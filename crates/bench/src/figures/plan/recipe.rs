//! What RECIPE plots (SOSP 2019, §7).

use super::{
    CACHE_MISSES, Figure, MOPS, Maker, Measure, OTHER_CACHE, OTHER_MEMORY, Said, chain, ratio, shown, value,
};
use indexes::IndexKind;

const WHOLE: &str = "The paper rounds to whole numbers. An insert takes 2 or 3 of each here, by the node's size, and 4 where \
    a node is put above another; copies write back each of their lines.";
const FOUR: &str = "The paper does not say what the fourth fence is for. Here an insert's fences depend on nodes alone, not \
    on the key's length: 2 or 3, and 4 where a node is put above another.";

const LOCKED: &str = "The paper puts a lock around all of WOART; here one is around its writers alone, and there are as many threads \
    as cores instead of 16.";

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
    let missed = |panel, counts: [&'static str; 5], source| {
        let counts = ycsb.iter().zip(counts);
        counts.map(move |(workload, count)| value(panel, workload, "part", count, source, OTHER_CACHE))
    };
    // Scans have a panel of their own.
    let beside_woart = ycsb.iter().zip([0, 0, 0, 0, 1]).map(|(workload, panel)| {
        let paper = Said::Range("2", "20");
        ratio(
            panel,
            workload,
            ("part", "woart"),
            paper,
            "§7.3, multi-threaded",
            LOCKED,
        )
    });
    vec![
        Figure {
            id: "recipe-4",
            title: "RECIPE Fig. 4: YCSB on ordered indexes, 8-byte and 24-byte keys",
            ours: false,
            paper: "16 threads, 64 M keys. Write-backs and fences an insert: P-ART 3 and 3 (integers), 3 and 4 (strings), \
                FAST&FAIR 7 and 8, P-BwTree 7 and 4, P-Masstree 3 and 5, P-HOT 7 and 5. The paper does not count \
                what its allocator persists. P-ART's last-level cache misses, load, A, B, C, E: 4, 4, 4, 4, 12 \
                (integers), 4, 5, 5, 5, 22 (strings). P-ART is 2 to 20 times WOART; tries are only about 20% slower with strings.",
            panels: chain(
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
            claims: chain(
                vec![
                    value(4, "load", "part", "3", "Fig. 4c", WHOLE),
                    value(5, "load", "part", "3", "Fig. 4c", WHOLE),
                    value(6, "load", "part", "3", "Fig. 4d", WHOLE),
                    value(7, "load", "part", "4", "Fig. 4d", FOUR),
                ],
                beside_woart
                    .chain(missed(8, ["4", "4", "4", "4", "12"], "Fig. 4c"))
                    .chain(missed(9, ["4", "5", "5", "5", "22"], "Fig. 4d")),
            ),
            differs: OTHER_MEMORY,
        },
        Figure {
            id: "recipe-5",
            title: "RECIPE Fig. 5 and Table 4: YCSB on hash tables",
            ours: false,
            paper: "Write-backs and fences an insert: P-CLHT 1.5 and 2.5, CCEH 2.3 and 3.0, Level hashing 3.7 and 5.8.",
            panels: vec![
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
            claims: vec![],
            differs: "Empty as long as no hash table is among the indexes.",
        },
    ]
}

//! What ROART plots (FAST 2021, §4.2 to §4.4).

use super::{Figure, MOPS, Maker, Measure, OTHER_MEMORY, Panel, Point, chain, ratio, shown, value};
use crate::figures::cell::Cell;
use crate::figures::svg::Shape;
use indexes::IndexKind;

const BOTH: (&str, &str) = ("roart", "part");
const WITHOUT_SMP: (&str, &str) = ("roart-without-inline", "roart-without-smp");
const WITHOUT_EC: (&str, &str) = ("roart-without-inline", "roart-without-ec");
const WITHOUT_MO: (&str, &str) = ("roart-without-inline", "roart-without-mo");
const WITHOUT_LC: (&str, &str) = ("roart-without-inline", "roart-without-lc");

// Why ours may differ.
const READS: &str = "A lookup of P-ART has a quarter more cold lines than one of ROART (figure limit); with one thread, which \
    that figure has, it takes up to half longer. Two threads on two cores that others use too vary by as much.";
const WRITES: &str = "Of an insert P-ART has as many write-backs as ROART or fewer, and a fence more only where a node has 16 or 48 \
    entries (figures recipe-4 and roart-16); both update in place, by one write-back and one fence, so that what is left is the way \
    down.";
const SCANS: &str = "Leaves of a scan are asked for before they are needed, which compact leaf arrays allow and single \
    leaves do not: their ratio here is that of roart-without-inline to roart-without-lc, and more.";
const TIMES: &str = "Another memory, and as many threads as cores instead of 16: means are near to the paper's. The 99th percentile \
    is of calls during which a thread lost its core, on a machine that others use too: its rounds differ by up to twice.";
const CONTENDED: &str = "Rounds differ by more than the two indexes do: the spread holds the paper's ratio, and 1, where there is \
    quiet enough to state one.";
const PERSISTS: &str = "It saves one write-back of twenty and one fence of twelve of an insert, one of seven of both of a removal \
    (panels below), which is what a time can gain at most where nearly all of it were persists.";
const SPLITS: &str = "It saves a fence in internal splits, which these keys bring so rarely that the fences of an insert are the \
    same to three digits (panel below): what the times show is noise.";
const ENTRIES: &str = "Above compact leaf arrays few inserts and removals write a node's entry: write-backs and fences are the same \
    to three digits (panels below), and what the times show is noise.";
const COMPACTION: &str = "It saves a level, whose node is a miss: the write-backs and fences are nearly the same (panels below), so \
    that all it gains is gained on the way down, which takes more of a write on this memory.";

pub fn figures(maker: &Maker) -> Vec<Figure> {
    let four = maker.threads(4);
    let str_more = format!("--key-kind str --threads {four} --no-counts");
    let u64_more = format!("--key-kind u64 --threads {four} --no-counts");
    let micro = &["get", "insert", "update", "scan100", "remove"];
    let family = || {
        IndexKind::ALL
            .iter()
            .copied()
            .filter(|index| index.name().starts_with("roart"))
    };
    let shown_and = |name: &'static str| {
        let wanted = ["roart-without-inline", name];
        IndexKind::ALL
            .iter()
            .copied()
            .filter(move |index| wanted.contains(&index.name()) || !index.is_ablation())
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
    let open = |index: IndexKind, keys: usize| {
        Cell(format!(
            "open --index {index} --keys {keys} --rounds 1 --pool {{pool}}"
        ))
    };
    let recovery = |title: &str, field: &'static str| Panel {
        title: title.into(),
        shape: Shape::Lines,
        unit: "ms",
        points: shown()
            .flat_map(|index| {
                [8, 4, 2, 1].map(|part| {
                    let keys = (maker.keys / part).max(1);
                    Point {
                        series: index.name().into(),
                        place: crate::figures::svg::short(keys as f64),
                        cell: open(index, keys),
                        pick: vec![("after", "kill".into())],
                        measure: Measure::Field(field),
                    }
                })
            })
            .collect(),
    };
    vec![
        Figure {
            id: "roart-14",
            title: "ROART Fig. 14: micro-benchmarks, keys of 4 to 128 bytes",
            paper: "4 threads, 30 M keys: ROART 2.562 Mops/s lookups and 1.704 inserts, P-ART 2.129 lookups; ROART's \
                inserts are 1.3 times P-ART's, its updates 1.16 times, its scans up to 1.65 times.",
            panels: maker.throughputs("operations", shown(), micro, &str_more),
            claims: vec![
                ratio(0, "get", BOTH, 2.562 / 2.129, READS),
                ratio(0, "insert", BOTH, 1.3, WRITES),
                ratio(0, "update", BOTH, 1.16, WRITES),
                ratio(1, "scan100", BOTH, 1.65, SCANS),
            ],
            differs: OTHER_MEMORY,
        },
        Figure {
            id: "roart-15",
            title: "ROART Fig. 15: its YCSB variants",
            paper: "Up to 36 threads: ROART is 1.27 times P-ART in (a), and 1.52 times in (e).",
            panels: maker.throughputs(
                "workloads",
                shown(),
                &["roart-a", "roart-b", "roart-c", "roart-d", "roart-e"],
                &str_more,
            ),
            claims: vec![
                ratio(0, "roart-a", BOTH, 1.27, WRITES),
                ratio(1, "roart-e", BOTH, 1.52, SCANS),
            ],
            differs: OTHER_MEMORY,
        },
        Figure {
            id: "roart-16",
            title: "ROART Fig. 16: what each technique is worth",
            paper: "Selective metadata persistence adds 13% to inserts and 10.1% to removals, entry compression 9.7% \
                and 10.8%, the minimally ordered split 4.8% to inserts; leaf compaction adds 17.2, 13.5, 14.7, 8.4 and 64.8% to lookup, insert, update, remove and \
                scan. The paper adds one after the other; here each is left out of the whole, which is \
                roart-without-inline.",
            panels: chain(
                maker.throughputs("operations", family(), micro, &str_more),
                [
                    maker.workloads(
                        "write-backs an insert and a removal",
                        family(),
                        &["insert", "remove"],
                        "--key-kind str",
                        "write-backs",
                        Measure::Field("write_backs_per_op"),
                    ),
                    maker.workloads(
                        "fences an insert and a removal",
                        family(),
                        &["insert", "remove"],
                        "--key-kind str",
                        "fences",
                        Measure::Field("fences_per_op"),
                    ),
                ],
            ),
            claims: vec![
                ratio(0, "insert", WITHOUT_SMP, 1.13, PERSISTS),
                ratio(0, "remove", WITHOUT_SMP, 1.101, PERSISTS),
                ratio(0, "insert", WITHOUT_EC, 1.097, ENTRIES),
                ratio(0, "remove", WITHOUT_EC, 1.108, ENTRIES),
                ratio(0, "insert", WITHOUT_MO, 1.048, SPLITS),
                ratio(0, "get", WITHOUT_LC, 1.172, COMPACTION),
                ratio(0, "insert", WITHOUT_LC, 1.135, COMPACTION),
                ratio(0, "update", WITHOUT_LC, 1.147, COMPACTION),
                ratio(0, "remove", WITHOUT_LC, 1.084, COMPACTION),
                ratio(1, "scan100", WITHOUT_LC, 1.648, SCANS),
            ],
            differs: "A technique that saves write-backs saves less time on DRAM than on Optane; the counts below the \
                times do not depend on that.",
        },
        Figure {
            id: "roart-17",
            title: "ROART Fig. 17: scans of more and more keys",
            paper: "With leaf compaction 1.07 to 2.01 times without; at least 1.65 times from 100 keys on.",
            panels: vec![maker.over(
                "scans",
                Shape::Lines,
                shown_and("roart-without-lc"),
                "scan100",
                &lengths,
                MOPS,
            )],
            claims: vec![
                ratio(0, "100", WITHOUT_LC, 1.65, SCANS),
                ratio(0, "400", WITHOUT_LC, 2.01, SCANS),
            ],
            differs: OTHER_MEMORY,
        },
        Figure {
            id: "roart-18",
            title: "ROART Fig. 18: keys of eight bytes",
            paper: "ROART is ahead of P-ART in all but little; scans are for B+-trees.",
            panels: maker.throughputs("operations", shown(), micro, &u64_more),
            claims: vec![],
            differs: OTHER_MEMORY,
        },
        Figure {
            id: "roart-19",
            title: "ROART Fig. 19: skew",
            paper: "16 threads, half lookups, half updates: from an exponent of 0.5 to 0.99 ROART loses 28%, P-ART 29.5%.",
            panels: vec![maker.over("by exponent", Shape::Lines, shown(), "roart-skew", &thetas, MOPS)],
            claims: vec![],
            differs: "With few threads nothing contends, and a hot set that fits the cache only helps.",
        },
        Figure {
            id: "roart-table-5",
            title: "ROART Table 5: latencies, half lookups, half inserts",
            paper: "16 threads: ROART 1.2 µs on average and 3.5 µs for the 99th percentile, P-ART 1.5 and 4.4.",
            panels: vec![
                latencies("mean", Measure::Micros("mean_ns")),
                latencies("99th percentile", Measure::Micros("p99_ns")),
                latencies("99.9th percentile", Measure::Micros("p999_ns")),
            ],
            claims: vec![
                value(0, "roart-a", "roart", 1.2, TIMES),
                value(0, "roart-a", "part", 1.5, TIMES),
                ratio(0, "roart-a", BOTH, 1.2 / 1.5, CONTENDED),
                value(1, "roart-a", "roart", 3.5, TIMES),
                value(1, "roart-a", "part", 4.4, TIMES),
                ratio(1, "roart-a", BOTH, 3.5 / 4.4, CONTENDED),
            ],
            differs: OTHER_MEMORY,
        },
        Figure {
            id: "roart-20",
            title: "ROART Fig. 20: space",
            paper: "With leaf arrays of 64 entries throughout ROART takes more than P-ART below 8 M keys, less above.",
            panels: vec![maker.over(
                "reserved bytes a key",
                Shape::Lines,
                shown_and("roart-without-sizes"),
                "load",
                &maker.sizes("--key-kind str --no-counts"),
                ("bytes a key", Measure::Field("bytes_per_key")),
            )],
            claims: vec![],
            differs: "Leaf arrays come in six sizes here, as the paper proposes, so that few keys do not cost more; \
                roart-without-sizes has those of 64 entries only.",
        },
        Figure {
            id: "roart-21",
            title: "ROART Fig. 21: recovery and instant restart",
            paper: "Recovery with reclamation takes 27 s for 128 M keys; with instant restart requests are served at once.",
            panels: vec![
                recovery("until the first answer", "first_get_ms"),
                recovery("until all that a crash left is reclaimed", "recovered_ms"),
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
            claims: vec![],
            differs: "Files lie in the page cache here, and one thread recovers where nothing else is said; on two cores a second one \
                takes the core of the calls beside it.",
        },
        Figure {
            id: "roart-22",
            title: "ROART Fig. 22: the allocator alone, chunks of 64 bytes",
            paper: "Chunks are allocated, written and persisted: DCMM is ahead of PMDK, nvm_malloc and Makalu, and scales.",
            panels: vec![maker.allocators()],
            claims: vec![],
            differs: "Beside libpmemobj where the system has it, which is PMDK's, and malloc, which persists nothing of its own; \
                none asks for huge pages.",
        },
    ]
}

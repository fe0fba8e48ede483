//! What ROART plots (FAST 2021, §4.2 to §4.4).

use super::{
    Figure, MOPS, Maker, Measure, OTHER_MEMORY, Panel, Said, Scale, between, chain, ratio, shown, value,
};
use crate::figures::svg::{Shape, short};
use indexes::IndexKind;

const BOTH: (&str, &str) = ("roart", "part");
/// The paper's ROART.
const WHOLE: &str = "roart-without-inline";
const WITHOUT_SMP: (&str, &str) = (WHOLE, "roart-without-smp");
const WITHOUT_EC: (&str, &str) = (WHOLE, "roart-without-ec");
const WITHOUT_MO: (&str, &str) = (WHOLE, "roart-without-mo");
const WITHOUT_LC: (&str, &str) = (WHOLE, "roart-without-lc");

// Why ours may differ.
const READS: &str = "Compact leaf arrays save nodes on the way down (figure limit counts the lines of either way). What a saved one is \
    worth depends on what a miss takes, and the paper's memory takes longer.";
const WRITES: &str = "Of an insert P-ART has as many write-backs as ROART or fewer, and a fence more only where a node has 16 or 48 \
    entries (figures recipe-4 and roart-16); both update in place, by one write-back and one fence, so that what is left is the way \
    down.";
const SCANS: &str = "Leaves of a scan are asked for before they are needed, which compact leaf arrays allow and single \
    leaves do not.";
const SHORT_SCANS: &str = "For ten keys a whole leaf array is gathered and sorted all the same, up to 64 of them, which takes as long as \
    the misses that it saves.";
const TIMES: &str = "Another memory, and as many threads as cores instead of 16. The 99th percentile is of calls during which a \
    thread may have lost its core.";
const CONTENDED: &str = "16 threads wait for each other and for the memory's bandwidth. Of a few, the slowest calls are those during \
    which a thread lost its core.";
const SKEW: &str = "From 0.85 on the paper's 16 threads wait for each other. Few threads seldom do, and a hot set that fits the cache \
    only helps.";
const PERSISTS: &str = "It saves persists (panels below), which take a smaller part of an operation in DRAM than on the paper's memory.";
const SPLITS: &str = "It saves a fence in internal splits alone: how many of these there are depends on the keys (fences in a panel \
    below), and a fence takes less time in DRAM.";
const ENTRIES: &str = "Above compact leaf arrays few inserts and removals write a node's entry (panels below); the paper measures it \
    before it adds these.";
const COMPACTION: &str = "It saves a level, whose node is a miss, and hardly a persist (panels below): what it gains is gained on \
    the way down, which takes more of a write where persists take less.";

// Where the paper has it.
const OVERALL: &str = "§4.2";
const ALL_OTHERS: &str = "§4.2, least and most of five other indexes";
const EACH: &str = "§4.3, 1";
const TABLE: &str = "Table 5";

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
    let longer = |keys: &str, paper, why| ratio(0, keys, WITHOUT_LC, paper, "§4.3, 2, least and most", why);
    vec![
        Figure {
            id: "roart-14",
            title: "ROART Fig. 14: micro-benchmarks, keys of 4 to 128 bytes",
            ours: false,
            paper: "4 threads, 30 M keys: ROART 2.562 Mops/s lookups and 1.704 inserts, P-ART 2.129 lookups; ROART's \
                inserts are 1.3 times P-ART's, its updates 1.16 times, its scans up to 1.65 times.",
            panels: maker.throughputs("operations", shown(), micro, &str_more),
            claims: vec![
                value(0, "get", "roart", "2.562", OVERALL, READS),
                value(0, "get", "part", "2.129", OVERALL, READS),
                ratio(0, "get", BOTH, Said::Over("2.562", "2.129"), OVERALL, READS),
                value(0, "insert", "roart", "1.704", OVERALL, WRITES),
                ratio(0, "insert", BOTH, "1.3", OVERALL, WRITES),
                value(0, "update", "roart", "1.6", OVERALL, WRITES),
                ratio(0, "update", BOTH, Said::UpTo("1.16"), OVERALL, WRITES),
                ratio(1, "scan100", BOTH, Said::UpTo("1.65"), OVERALL, SCANS),
            ],
            differs: OTHER_MEMORY,
        },
        Figure {
            id: "roart-15",
            title: "ROART Fig. 15: its YCSB variants",
            ours: false,
            paper: "Up to 36 threads: ROART is 1.27 times P-ART in (a), and 1.52 times in (e); in (b) 1.17 to 8.27 times the others, in \
                (c) 1.15 to 5.13 times.",
            panels: maker.throughputs(
                "workloads",
                shown(),
                &["roart-a", "roart-b", "roart-c", "roart-d", "roart-e"],
                &str_more,
            ),
            claims: vec![
                ratio(0, "roart-a", BOTH, "1.27", "§4.2, up to, 36 threads", WRITES),
                ratio(0, "roart-b", BOTH, Said::Range("1.17", "8.27"), ALL_OTHERS, READS),
                ratio(0, "roart-c", BOTH, Said::Range("1.15", "5.13"), ALL_OTHERS, READS),
                ratio(1, "roart-e", BOTH, "1.52", OVERALL, SCANS),
            ],
            differs: "Not over threads: by four of them, or as many as there are cores if these are fewer, where the paper goes up to \
                36. And another memory: DRAM, where fences cost less beside misses.",
        },
        Figure {
            id: "roart-16",
            title: "ROART Fig. 16: what each technique is worth",
            ours: false,
            paper: "Selective metadata persistence adds 13% to inserts and 10.1% to removals, entry compression 9.7% \
                and 10.8%, the minimally ordered split 4.8% to inserts; leaf compaction adds 17.2, 13.5, 14.7, 8.4 and 64.8% to lookup, insert, update, remove and \
                scan. The paper adds one after the other; here each is left out of the whole, which is \
                roart-without-inline.",
            panels: chain(
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
            claims: vec![
                ratio(0, "insert", WITHOUT_SMP, "1.13", EACH, PERSISTS),
                ratio(0, "remove", WITHOUT_SMP, "1.101", EACH, PERSISTS),
                ratio(0, "insert", WITHOUT_EC, "1.097", EACH, ENTRIES),
                ratio(0, "remove", WITHOUT_EC, "1.108", EACH, ENTRIES),
                ratio(0, "insert", WITHOUT_MO, "1.048", EACH, SPLITS),
                ratio(0, "get", WITHOUT_LC, "1.172", EACH, COMPACTION),
                ratio(0, "insert", WITHOUT_LC, "1.135", EACH, COMPACTION),
                ratio(0, "update", WITHOUT_LC, "1.147", EACH, COMPACTION),
                ratio(0, "remove", WITHOUT_LC, "1.084", EACH, COMPACTION),
                ratio(1, "scan100", WITHOUT_LC, "1.648", EACH, SCANS),
            ],
            differs: "One thread, whose runs vary less than those of two on two cores. At scale laptop half of the keys, and four runs \
                in each round. A technique that saves write-backs saves less time on DRAM than on Optane; the counts below the \
                times do not depend on that.",
        },
        Figure {
            id: "roart-17",
            title: "ROART Fig. 17: scans of more and more keys",
            ours: false,
            paper: "With leaf compaction 1.07 to 2.01 times without; of more than 100 keys at least 1.65 times.",
            panels: vec![
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
            claims: vec![
                longer("10", Said::Range("1.07", "2.01"), SHORT_SCANS),
                longer("50", Said::Range("1.07", "2.01"), SCANS),
                longer("100", Said::Range("1.07", "2.01"), SCANS),
                longer("200", Said::Range("1.65", "2.01"), SCANS),
                longer("400", Said::Range("1.65", "2.01"), SCANS),
            ],
            differs: OTHER_MEMORY,
        },
        Figure {
            id: "roart-18",
            title: "ROART Fig. 18: keys of eight bytes",
            ours: false,
            paper: "Plot only for ROART beside P-ART. FAST&FAIR is up to 1.09 and 1.21 times P-ART in lookups and updates; ROART is ahead of it \
                in lookups and slightly behind in updates, and scans are for B+-trees.",
            panels: maker.throughputs("operations", shown(), micro, &u64_more),
            claims: vec![],
            differs: OTHER_MEMORY,
        },
        Figure {
            id: "roart-19",
            title: "ROART Fig. 19: skew",
            ours: false,
            paper: "16 threads, half lookups, half updates: from an exponent of 0.5 to 0.99 ROART loses 28%, P-ART 29.5%.",
            panels: vec![
                maker
                    .over("by exponent", Shape::Lines, shown(), "roart-skew", &thetas, MOPS)
                    .along("exponent of the zipfian distribution"),
            ],
            claims: vec![
                between(0, ("0.99", "0.5"), "roart", "0.72", "§4.3, 4, about", SKEW),
                between(0, ("0.99", "0.5"), "part", "0.705", "§4.3, 4", SKEW),
            ],
            differs: "With few threads nothing contends, and a hot set that fits the cache only helps.",
        },
        Figure {
            id: "roart-table-5",
            title: "ROART Table 5: latencies, half lookups, half inserts",
            ours: false,
            paper: "16 threads: ROART 1.2 µs on average and 3.5 µs for the 99th percentile, P-ART 1.5 and 4.4.",
            panels: vec![
                latencies("mean", Measure::Micros("mean_ns")),
                latencies("99th percentile", Measure::Micros("p99_ns")),
                latencies("99.9th percentile", Measure::Micros("p999_ns")),
            ],
            claims: vec![
                value(0, "roart-a", "roart", "1.2", TABLE, TIMES),
                value(0, "roart-a", "part", "1.5", TABLE, TIMES),
                ratio(0, "roart-a", BOTH, Said::Over("1.2", "1.5"), TABLE, CONTENDED),
                value(1, "roart-a", "roart", "3.5", TABLE, TIMES),
                value(1, "roart-a", "part", "4.4", TABLE, TIMES),
                ratio(1, "roart-a", BOTH, Said::Over("3.5", "4.4"), TABLE, CONTENDED),
            ],
            differs: OTHER_MEMORY,
        },
        Figure {
            id: "roart-20",
            title: "ROART Fig. 20: space",
            ours: false,
            paper: "Plot only. With leaf arrays of 64 entries throughout ROART takes more than P-ART below 8 M keys, less above.",
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
            ours: false,
            paper: "Plot only for fewer keys than 128 M, whose recovery takes 19 s, and 27 s with reclamation; with instant restart \
                requests are served at once.",
            panels: vec![
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
            claims: vec![],
            differs: "Files lie in the page cache here, and one thread recovers where nothing else is said; on two cores a second one \
                takes the core of the calls beside it.",
        },
        Figure {
            id: "roart-22",
            title: "ROART Fig. 22: the allocator alone, chunks of 64 bytes",
            ours: false,
            paper: "Plot only. Chunks are allocated, written and persisted: DCMM is ahead of PMDK, nvm_malloc and Makalu, and scales.",
            panels: vec![maker.allocators()],
            claims: vec![],
            differs: "Beside libpmemobj where the system has it, which is PMDK's, and malloc, which persists nothing of its own; \
                none asks for huge pages.",
        },
    ]
}

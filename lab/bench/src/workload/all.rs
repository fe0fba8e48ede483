//! The table of workloads: those of YCSB, of the papers, and their micro-benchmarks.

use super::Mix::{self, Batches, Load, Mixed, Only};
use super::Step::{Insert, Miss, Modify, Read, Remove, Scan, Update};
use super::{ScanLength, Workload};
use crate::distribution::Distribution::{self, Latest, Permutation, Uniform, Zipfian};

const fn workload(name: &'static str, about: &'static str, mix: Mix, distribution: Distribution) -> Workload {
    Workload {
        name,
        about,
        mix,
        distribution,
        scans: ScanLength::Keys(100),
    }
}

const fn scanning(workload: Workload, scans: ScanLength) -> Workload {
    Workload { scans, ..workload }
}

const HALF_READ_HALF_UPDATE: Mix = Mixed(&[(50, Read), (50, Update)]);
const HALF_READ_HALF_INSERT: Mix = Mixed(&[(50, Read), (50, Insert)]);
const MOSTLY_READ: Mix = Mixed(&[(95, Read), (5, Update)]);
const MOSTLY_READ_SOME_INSERT: Mix = Mixed(&[(95, Read), (5, Insert)]);
const MOSTLY_SCAN: Mix = Mixed(&[(95, Scan), (5, Insert)]);
/// DPTree §4.4: a mean of 0.001% of the keys, with a deviation of 0.0006%.
const DPTREE_SCANS: ScanLength = ScanLength::Share(0.00001, 0.000_006);
const YCSB_SCANS: ScanLength = ScanLength::UpTo(100);

/// All workloads.
pub const ALL: &[Workload] = &[
    workload("load", "Insert every key into an empty index", Load, Permutation),
    workload("get", "Read single keys", Only(Read), Permutation),
    workload(
        "get-absent",
        "Look up single keys that are absent",
        Only(Miss),
        Permutation,
    ),
    workload(
        "multi_get",
        "Read keys in batches of 32; operations are counted per key, latencies per batch",
        Batches,
        Permutation,
    ),
    workload(
        "insert",
        "Insert new keys into the loaded index",
        Only(Insert),
        Permutation,
    ),
    workload("update", "Replace the values of keys", Only(Update), Permutation),
    workload("remove", "Remove keys", Only(Remove), Permutation),
    workload(
        "scan100",
        "Read the values of 100 keys from a random key onward",
        Only(Scan),
        Permutation,
    ),
    workload(
        "ycsb-a",
        "YCSB A: 50% reads, 50% updates",
        HALF_READ_HALF_UPDATE,
        Zipfian,
    ),
    workload("ycsb-b", "YCSB B: 95% reads, 5% updates", MOSTLY_READ, Zipfian),
    workload("ycsb-c", "YCSB C: reads", Only(Read), Zipfian),
    workload(
        "ycsb-d",
        "YCSB D: 95% reads of the latest, 5% inserts",
        MOSTLY_READ_SOME_INSERT,
        Latest,
    ),
    scanning(
        workload(
            "ycsb-e",
            "YCSB E: 95% scans of 1 to 100 keys, 5% inserts",
            MOSTLY_SCAN,
            Zipfian,
        ),
        YCSB_SCANS,
    ),
    workload(
        "ycsb-f",
        "YCSB F: 50% reads, 50% read-modify-writes",
        Mixed(&[(50, Read), (50, Modify)]),
        Zipfian,
    ),
    workload(
        "recipe-load-a",
        "RECIPE Load A: inserts into an empty index",
        Load,
        Permutation,
    ),
    workload(
        "recipe-a",
        "RECIPE A: 50% reads, 50% inserts",
        HALF_READ_HALF_INSERT,
        Uniform,
    ),
    workload(
        "recipe-b",
        "RECIPE B: 95% reads, 5% inserts",
        MOSTLY_READ_SOME_INSERT,
        Uniform,
    ),
    workload("recipe-c", "RECIPE C: reads", Only(Read), Uniform),
    scanning(
        workload(
            "recipe-e",
            "RECIPE E: 95% scans of 1 to 100 keys, 5% inserts",
            MOSTLY_SCAN,
            Uniform,
        ),
        YCSB_SCANS,
    ),
    workload(
        "roart-a",
        "ROART (a): 50% lookups, 50% inserts",
        HALF_READ_HALF_INSERT,
        Uniform,
    ),
    workload(
        "roart-b",
        "ROART (b): 95% lookups, 5% inserts",
        MOSTLY_READ_SOME_INSERT,
        Uniform,
    ),
    workload("roart-c", "ROART (c): lookups", Only(Read), Uniform),
    workload("roart-d", "ROART (d): inserts", Only(Insert), Permutation),
    scanning(
        workload(
            "roart-e",
            "ROART (e): 95% scans, 5% inserts",
            MOSTLY_SCAN,
            Uniform,
        ),
        YCSB_SCANS,
    ),
    workload(
        "roart-skew",
        "ROART Fig. 19: 50% lookups, 50% updates, skewed",
        HALF_READ_HALF_UPDATE,
        Zipfian,
    ),
    workload("dptree-insert", "DPTree InsertOnly", Load, Permutation),
    workload("dptree-read", "DPTree ReadOnly", Only(Read), Uniform),
    workload(
        "dptree-read-update",
        "DPTree ReadUpdate: 50% reads, 50% updates",
        HALF_READ_HALF_UPDATE,
        Uniform,
    ),
    scanning(
        workload(
            "dptree-scan-insert",
            "DPTree ScanInsert: 95% scans, 5% inserts",
            MOSTLY_SCAN,
            Uniform,
        ),
        DPTREE_SCANS,
    ),
    scanning(
        workload(
            "dptree-mixed",
            "DPTree Mixed: 50% lookups, 20% updates, 10% scans, 20% inserts",
            Mixed(&[(50, Read), (20, Update), (10, Scan), (20, Insert)]),
            Uniform,
        ),
        DPTREE_SCANS,
    ),
];

//! The embedded database survives every explored crash: each batch and each transaction over two maps of different
//! indexes is atomic, beside writes of single keys.

mod common;

use common::modifications;
use crashkit::{Explorer, History, MemoryModel, Mode, Report, Settings};
use wollemi_torture::batches::Op;
use wollemi_torture::batches::{Batches, history};

fn explore(batches: Batches, mode: Mode, histories: impl Iterator<Item = History<Op>>) -> Report {
    let settings = Settings {
        model: MemoryModel::from(mode),
        again_share: 40,
        kill_share: 20,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(batches, settings).expect("memory");
    for history in histories {
        if let Err(failure) = explorer.explore(&history) {
            panic!("{failure}\n{}", explorer.report());
        }
    }
    let report = explorer.into_report();
    println!("{report}");
    report
}

/// A batch is atomic under crashes while it is written, published or executed, while the root is made, and during the
/// opening that executes it.
#[test]
fn a_batch_is_there_or_not() {
    for (mode, least) in [(Mode::Power, 1000), (Mode::Process, 200)] {
        let report = explore(Batches::default(), mode, (0..6).map(|seed| history(seed, 12, 1)));
        assert!(report.states > least, "{report}");
        assert!(report.again > 0, "{report}");
        let missing = modifications::missing(modifications::BATCHES, &report.coverage);
        assert!(missing.is_empty(), "{mode}: {missing:?}");
    }
}

/// The same with other indexes for the maps, by one thread and by several: DPTree merges beside batches, a hash table
/// has no ranges, and each of them serves the temporary map and the restored one.
#[test]
fn other_indexes_hold_the_maps() {
    let reached: [&[&str]; 2] = [
        &[
            "merge: flip",
            "opening: record replayed",
            "clht: first table",
            "clht: overflow bucket",
            "bulk: publication",
        ],
        &[
            "new layer",
            "split of a border",
            "consolidation",
            "bulk: publication",
        ],
    ];
    for (batches, steps) in Batches::HELD[1..].iter().zip(reached) {
        let alone = (0..14).map(|seed| history(seed, 20, 1));
        let together = (14..28).map(|seed| history(seed, 16, 2 + seed as u32 % 2));
        let report = explore(*batches, Mode::Power, alone.chain(together));
        assert!(report.states > 2000, "{batches}: {report}");
        let steps = [modifications::BATCHES, steps].concat();
        let missing = modifications::missing(&steps, &report.coverage);
        assert!(missing.is_empty(), "{batches}: {missing:?}");
    }
}

/// Operations, among them the drop of a map, run during recovery. After a crash in a nearly full pool, the opening
/// executes batches again with no more room than before.
#[test]
fn recovery_and_full_pools_are_met() {
    let reopened = (0..150).filter(|seed| seed % 3 == 2);
    let full = (0..40).filter(|seed| seed % 5 == 3);
    let of = |seeds: &mut dyn Iterator<Item = u64>| {
        let histories: Vec<_> = seeds.map(|seed| history(seed, 16, 1 + seed as u32 % 3)).collect();
        explore(Batches::default(), Mode::Power, histories.into_iter())
    };
    let report = of(&mut reopened.clone());
    let steps = [
        "recovery: retired while it traced",
        "recovery: waits for a removal",
    ];
    let missing = modifications::missing(&steps, &report.coverage);
    assert!(missing.is_empty(), "{missing:?}");
    let report = of(&mut full.clone());
    let steps = ["full: refused", "full: no pages", "opening: batch made again"];
    let missing = modifications::missing(&steps, &report.coverage);
    assert!(missing.is_empty(), "{missing:?}");
}

/// Among the first histories of a run, some of two, of three and of four threads read keys beside each other's writes,
/// and some begin with keys of one stem.
#[test]
fn threads_read_keys_beside_writers() {
    let is_read = |op: &Op| matches!(op, Op::Get((0 | 1, _)));
    let has_many = |op: &Op, many: usize| matches!(op, Op::Batch(changes, _) if changes.len() > many);
    for threads in 2..=4 {
        let seeds = (1..65).filter(|seed| seed % 4 + 1 == threads);
        let histories: Vec<_> = seeds.map(|seed| history(seed, 60, threads as u32)).collect();
        let fills = |history: &History<Op>| history.ops.iter().any(|op| has_many(op, 20));
        assert!(histories.iter().any(fills), "{threads} threads");
        let beside = histories
            .iter()
            .map(|history| &history.ops[history.prepared as usize..]);
        let reading: Vec<_> = beside.filter(|ops| ops.iter().any(is_read)).collect();
        assert!(!reading.is_empty(), "{threads} threads");
        for ops in reading {
            assert!(
                !ops.iter().any(|op| has_many(op, 1)),
                "a reader may see a part of a batch"
            );
        }
    }
}

/// Databases are named after the indexes of their maps.
#[test]
fn names_say_what_holds_the_maps() {
    for batches in Batches::HELD {
        let named = Batches::named(&batches.to_string()).expect("its own name");
        assert_eq!(named.to_string(), batches.to_string());
    }
    assert_eq!(Batches::default().to_string(), "kv");
    for wrong in [
        "kv:",
        "kv:roart",
        "kv:roart,part",
        "kv:roart,part,wort,woart",
        "kv:a,b,c",
        "db",
    ] {
        Batches::named(wrong).expect_err(wrong);
    }
}

/// With several threads, a batch that an opening executes again undoes no acknowledged write of a single key, and the
/// reads of a transaction belong to one moment.
#[test]
fn batches_and_single_writes_come_one_after_the_other() {
    let report = explore(
        Batches::default(),
        Mode::Power,
        (0..8).map(|seed| history(seed, 16, 2 + seed as u32 % 2)),
    );
    assert!(report.states > 300, "{report}");
}

/// Two transactions that each read what the other changes, and a read-only one, run beside batches. All are
/// serializable, and atomic under crashes, where several intents are executed again.
#[test]
fn transactions_come_one_after_the_other() {
    let place = |map: u8, key: u8| (map, vec![key]);
    let value = |byte| Some(vec![byte; 8]);
    let skew = |reads: u8, writes: u8, range: bool| {
        let range = range.then(|| (place(0, 0), false));
        let changes = vec![
            (place(0, writes), value(reads)),
            (place(1, writes), value(writes)),
        ];
        Op::Transaction(vec![place(0, reads)], range, changes)
    };
    let histories = (0..24).map(|seed| {
        let range = seed % 2 == 1;
        let looks = Op::Transaction(
            vec![place(0, 1), place(1, 2)],
            Some((place(0, 0), range)),
            Vec::new(),
        );
        let batch = Op::Batch(vec![(place(0, 3), value(3)), (place(1, 4), None)], None);
        History {
            seed,
            ops: vec![
                skew(1, 2, range),
                skew(2, 1, range),
                looks,
                batch,
                skew(3, 4, false),
            ],
            threads: 2 + seed as u32 % 2,
            ..History::default()
        }
    });
    let report = explore(Batches::default(), Mode::Power, histories);
    let missing = modifications::missing(modifications::SEVERAL_BATCHES, &report.coverage);
    assert!(missing.is_empty(), "{missing:?}");
}

/// A reader beside a batch that changes a key twice sees the key as it was before the batch or as it is after it.
#[test]
fn a_reader_sees_no_value_in_between() {
    let place = || (0, Vec::new());
    let other = (1, vec![1]);
    let value = |byte| Some(vec![byte; 8]);
    let changes = vec![(place(), value(1)), (other, value(2)), (place(), value(3))];
    let histories = (0..24).map(|seed| History {
        seed,
        ops: vec![Op::Batch(changes.clone(), None), Op::Get(place())],
        threads: 2,
        ..History::default()
    });
    explore(Batches::default(), Mode::Power, histories);
}

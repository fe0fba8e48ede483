//! The server's items survive every explored crash: acknowledged answers hold, flushed and expired items stay absent,
//! no unique is issued twice, and the number of items is right.

use crashkit::{Explorer, History, MemoryModel, Mode, Report, Settings};
use std::collections::BTreeSet;
use std::sync::Arc;
use wollemi_torture::items::{Items, Life, Op, Place, Shown, history};

/// Explores the histories. Returns the report, and the operations that were in flight at crashes.
fn explore(mode: Mode, histories: impl Iterator<Item = History<Op>>) -> (Report, BTreeSet<&'static str>) {
    let settings = Settings {
        model: MemoryModel::from(mode),
        again_share: 40,
        kill_share: 20,
        ..Settings::default()
    };
    let items = Arc::new(Items::default());
    let mut explorer = Explorer::<Items>::new(items.clone(), settings).expect("memory");
    for history in histories {
        if let Err(failure) = explorer.explore(&history) {
            panic!("{failure}\n{}", explorer.report());
        }
    }
    let report = explorer.into_report();
    println!("{report}");
    (report, items.in_flight())
}

/// The names of all operations.
const OPERATIONS: [&str; 24] = [
    "add",
    "append",
    "bury",
    "compare and swap",
    "count",
    "count on",
    "delete",
    "evict",
    "flush",
    "flush never",
    "flush soon",
    "get",
    "get and touch",
    "item count",
    "prepend",
    "put",
    "recover",
    "replace",
    "set",
    "spend uniques",
    "sweep",
    "touch",
    "transaction",
    "transaction discarded",
];

/// Histories of one thread, and of two to four, of which some read and count during another's write: answers and crash
/// states are linearizable, and some crash interrupts each kind of operation.
#[test]
fn operations_come_one_after_the_other() {
    let mut all_in_flight = BTreeSet::new();
    for (mode, least) in [(Mode::Power, 1000), (Mode::Process, 200)] {
        let alone = (0..8).map(|seed| history(seed, 40, 1));
        let together = (0..12).map(|seed| history(seed, 24, 2 + seed as u32 % 3));
        for (report, in_flight) in [explore(mode, alone), explore(mode, together)] {
            assert!(report.states > least, "{report}");
            assert!(report.again > 0, "{report}");
            all_in_flight.extend(in_flight);
        }
    }
    let is_missing = |name: &&str| !all_in_flight.contains(name);
    let missing: Vec<_> = OPERATIONS.into_iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn place(database: u8, key: &str) -> Place {
    (database, key.into())
}

fn set(place: Place, token: u64) -> Op {
    let shown = Shown {
        flags: token as u32,
        data: token.to_string().into(),
        life: Life::Endless,
    };
    Op::Set(place, shown, token)
}

fn explore_one(ops: &[Op], threads: u32) {
    let histories = (0..6).map(|seed| History {
        seed,
        ops: ops.to_vec(),
        threads,
        ..History::default()
    });
    explore(Mode::Power, histories);
}

/// A transaction stores items, flushes their database and stores more, while a flush of the other database is due when
/// it begins.
#[test]
fn flushes_are_part_of_transactions() {
    let of = |commits| {
        let ops = vec![
            set(place(0, "a"), 3),
            Op::Flush(0),
            set(place(0, "b"), 4),
            set(place(1, "a"), 5),
        ];
        Op::Transaction(ops, commits)
    };
    let ops = [
        set(place(0, "a"), 1),
        set(place(1, "b"), 2),
        Op::FlushLater(1, true),
        of(false),
        Op::ItemCount(0),
        of(true),
        Op::ItemCount(1),
    ];
    explore_one(&ops, 1);
    explore_one(&ops, 2);
}

/// Uniques that a discarded transaction reserved stay reserved.
#[test]
fn uniques_reserved_in_a_transaction_stay_reserved() {
    let discarded = Op::Transaction(vec![Op::Spend(0), set(place(0, "a"), 1)], false);
    let ops = [set(place(0, "a"), 2), discarded, set(place(0, "b"), 3)];
    explore_one(&ops, 1);
}

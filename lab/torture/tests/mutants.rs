//! The kit detects omitted persists: without a persist that the heap or a radix index needs, some explored image is
//! wrong, and a table gives the reason for every other persist.

mod common;

use common::IndexKind;
use crashkit::blobs::{self, Blobs};
use crashkit::{Explorer, History, Hunted, Settings, Subject};
use wollemi_torture::batches::{self, Batches};
use wollemi_torture::history;
use wollemi_torture::map::{OfIndex, Op};

/// The maximum number of images of one mutant judged in one history, before a second crash and again after it.
const IMAGES: u64 = 2000;

/// Runs the mutants of a subject against this many histories of one to four threads. Mutants of persists that the table
/// forgives run only if `forgiven` asks for them.
fn hunt<S: Subject>(
    subject: S,
    histories: u64,
    history: impl Fn(u64, u32) -> History<S::Op>,
    forgiven: bool,
) -> Vec<Hunted> {
    let settings = Settings {
        deep_share: 0,
        hunt_forgiven: forgiven,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(subject, settings).expect("memory");
    let histories = (0..histories).map(|seed| history(seed, 1 + seed as u32 % 4));
    let hunted = explorer.hunt(histories, IMAGES, |_| true).expect("no failure");
    println!("{}", explorer.report());
    for one in &hunted {
        println!("{one}");
    }
    hunted
}

/// Returns the mutants that nothing detected and no reason explains.
fn unexplained(hunted: &[Hunted]) -> Vec<String> {
    let unexplained = hunted.iter().filter(|one| one.is_unexplained());
    unexplained.map(ToString::to_string).collect()
}

/// Counts the file's persists whose omission was detected.
fn killed(hunted: &[Hunted], file: &str) -> usize {
    let of_file = hunted.iter().filter(|one| one.mutant.site.file().ends_with(file));
    of_file.filter(|one| one.is_killed()).count()
}

/// Returns a history in which one thread changes a value over and over, and another reads it.
fn a_reader_beside_a_writer(seed: u64) -> History<Op> {
    let key = || b"a key that is long"[..].into();
    let changes = (1..20u64).flat_map(|value| {
        let change = Op::Update(key(), value.to_le_bytes()[..].into());
        [change, Op::Get(key())]
    });
    let first = Op::Insert(key(), [0; 8][..].into());
    History {
        seed,
        ops: std::iter::once(first).chain(changes).collect(),
        prepared: 1,
        threads: 2,
        ..History::default()
    }
}

/// Returns histories of all kinds, and some of a reader beside a writer, which must persist values in flight that it
/// reads.
fn of_map_and_readers(seed: u64, threads: u32) -> History<Op> {
    match seed {
        38.. => a_reader_beside_a_writer(seed),
        _ => history::of_map(seed, 60, threads),
    }
}

/// Returns a history in which one thread inserts and removes a key over and over, and another looks for it.
fn a_reader_beside_links(seed: u64) -> History<Op> {
    let key = || b"a key that is long"[..].into();
    let value = || b"a value that is long"[..].into();
    let turn = [
        Op::Insert(key(), value()),
        Op::Get(key()),
        Op::Remove(key()),
        Op::Get(key()),
    ];
    let other = Op::Insert(b"a key that stays there"[..].into(), value());
    History {
        seed,
        ops: std::iter::once(other).chain(vec![turn; 8].concat()).collect(),
        prepared: 1,
        threads: 2,
        ..History::default()
    }
}

/// A reader that meets a link in flight makes it durable before it answers: without its write-back or its fence some
/// image is wrong.
#[test]
fn what_readers_persist_is_needed() {
    let subject = OfIndex::listed(IndexKind::Roart);
    let hunted = hunt(subject, 12, |seed, _| a_reader_beside_links(seed), true);
    assert!(killed(&hunted, "pmem/src/token/slot.rs") >= 2);
}

/// Every persist of ROART, of the heap and of pools that ROART's histories reach is needed.
#[test]
fn persists_of_roart_are_needed() {
    let hunted = hunt(OfIndex::listed(IndexKind::Roart), 42, of_map_and_readers, false);
    assert_eq!(unexplained(&hunted), [""; 0]);
    assert!(killed(&hunted, "roart/src/write.rs") >= 8);
    assert!(killed(&hunted, "roart/src/inline.rs") + killed(&hunted, "roart/src/edit_inline.rs") >= 9);
    let modifications = ["grow.rs", "shrink.rs", "together.rs"];
    let killed = modifications.map(|file| killed(&hunted, &format!("roart/src/{file}")));
    assert!(killed.iter().sum::<usize>() >= 10, "{killed:?}");
}

/// The same for ROART with pointers and values published by non-temporal stores.
#[test]
fn persists_of_streaming_are_needed() {
    let subject = OfIndex::listed(IndexKind::RoartStreaming);
    let hunted = hunt(subject, 42, of_map_and_readers, false);
    assert_eq!(unexplained(&hunted), [""; 0]);
}

/// Every persist of the database is needed.
#[test]
fn persists_of_batches_are_needed() {
    let history = |seed, threads| batches::history(seed, 16, threads);
    let hunted = hunt(Batches::default(), 16, history, false);
    let own: Vec<Hunted> = hunted
        .into_iter()
        .filter(|one| one.mutant.site.file().contains("wollemi/src/"))
        .collect();
    assert_eq!(unexplained(&own), [""; 0]);
    assert!(killed(&own, "wollemi/src/write/own.rs") >= 4);
}

/// A few histories detect the omission of this many persists of each of the other radix indexes and of P-HOT. (To show
/// that the others stay for a reason takes more histories: `wollemi-lab torture --mutants`.)
#[test]
fn persists_of_other_indexes_are_missed() {
    for (kind, folder, least) in [
        (IndexKind::Part, "recipe/src/part/", 20),
        (IndexKind::Hot, "recipe/src/hot/", 8),
        (IndexKind::Wort, "wort/src/", 8),
        (IndexKind::Woart, "wort/src/", 20),
        (IndexKind::ArtCow, "wort/src/", 15),
    ] {
        let history = |seed, threads| history::of_map(seed, 60, threads);
        let hunted = hunt(OfIndex::listed(kind), 6, history, true);
        let own = hunted
            .iter()
            .filter(|one| one.mutant.site.file().contains(folder));
        let killed = own.filter(|one| one.is_killed()).count();
        assert!(killed >= least, "{kind}: {killed}");
    }
}

/// Every persist of the heap alone is needed.
#[test]
fn persists_of_the_heap_are_needed() {
    let history = |seed, threads| blobs::history(seed, 30, threads);
    let hunted = hunt(Blobs, 24, history, false);
    assert_eq!(unexplained(&hunted), [""; 0]);
    let of_roots = ["heap/src/roots/directory.rs", "heap/src/recovery/retire_tree.rs"];
    assert!(of_roots.map(|file| killed(&hunted, file)).iter().sum::<usize>() >= 6);
}

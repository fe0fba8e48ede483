//! The kit sees: without a persist that the heap or a radix index needs, some explored image is wrong, and of every other
//! one the source says why it stays.

mod common;

use common::{IndexKind, subject};
use wollemi_crashtest::blobs::{self, Blobs};
use wollemi_crashtest::map::Op;
use wollemi_crashtest::{Explorer, History, Hunted, Settings, Subject, history};

/// Images of one mutant judged in one history, at most.
const IMAGES: u64 = 2000;

/// Puts the mutants of a subject to so many histories of one to four threads.
fn hunt<S: Subject>(subject: S, histories: u64, history: impl Fn(u64, u32) -> History<S::Op>) -> Vec<Hunted> {
    let settings = Settings {
        deep_share: 0,
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

/// Those that nothing has missed and no reason keeps.
fn unexplained(hunted: &[Hunted]) -> Vec<String> {
    let unexplained = hunted.iter().filter(|one| one.is_unexplained());
    unexplained.map(ToString::to_string).collect()
}

/// How many of the file's persists were missed.
fn killed(hunted: &[Hunted], file: &str) -> usize {
    let of_file = hunted.iter().filter(|one| one.mutant.site.file().ends_with(file));
    of_file.filter(|one| one.is_killed()).count()
}

/// One thread changes a value over and over, and another one reads it.
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
    }
}

/// Every persist of ROART, of the heap and of pools that ROART's histories come to.
#[test]
fn persists_of_roart_are_needed() {
    let hunted = hunt(subject(IndexKind::Roart), 42, |seed, threads| match seed {
        // Who meets a value under way persists it.
        38.. => a_reader_beside_a_writer(seed),
        _ => history::of_map(seed, 60, threads),
    });
    assert_eq!(unexplained(&hunted), [""; 0]);
    // What every reader is promised.
    assert!(killed(&hunted, "pmem/src/token/slot.rs") >= 2);
    assert!(killed(&hunted, "roart/src/write.rs") >= 8);
    assert!(killed(&hunted, "roart/src/inline.rs") + killed(&hunted, "roart/src/inline/edit.rs") >= 9);
    let modifications = ["grow.rs", "shrink.rs", "group.rs"];
    let killed = modifications.map(|file| killed(&hunted, &format!("roart/src/{file}")));
    assert!(killed.iter().sum::<usize>() >= 10, "{killed:?}");
}

/// So many persists of each of the other radix indexes are missed, in a few histories. (That the rest stays for a reason takes
/// more of them: `wollemi torture --mutants`.)
#[test]
fn persists_of_radix_indexes_are_missed() {
    for (kind, folder, least) in [
        (IndexKind::Part, "recipe/src/", 20),
        (IndexKind::Wort, "wort/src/", 8),
        (IndexKind::Woart, "wort/src/", 20),
        (IndexKind::ArtCow, "wort/src/", 15),
    ] {
        let hunted = hunt(subject(kind), 6, |seed, threads| {
            history::of_map(seed, 60, threads)
        });
        let own = hunted
            .iter()
            .filter(|one| one.mutant.site.file().contains(folder));
        let killed = own.filter(|one| one.is_killed()).count();
        assert!(killed >= least, "{kind}: {killed}");
    }
}

/// Every persist of the heap alone.
#[test]
fn persists_of_the_heap_are_needed() {
    let hunted = hunt(Blobs, 24, |seed, threads| blobs::history(seed, 30, threads));
    assert_eq!(unexplained(&hunted), [""; 0]);
    assert!(killed(&hunted, "heap/src/root.rs") >= 6);
}

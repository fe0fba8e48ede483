//! Writes of several keys at once (`Index::write_many`): most of ROART's become durable together.

mod common;

use common::{IndexKind, claimed, explore};
use crashkit::{Explorer, History, MemoryModel, Mode, Random, Settings};
use wollemi_torture::map::{Bytes, OfIndex, Op};

/// The step that ROART reports when several puts become durable together.
const PUTS_TOGETHER: &str = "several puts together";

/// Draws a value that needs a leaf.
fn value(random: &mut Random) -> Bytes {
    let len = 9 + random.below(40) as usize;
    vec![random.below(256) as u8; len].into()
}

/// The step that ROART reports when several pairs in inline leaf arrays become durable together.
const PAIRS_TOGETHER: &str = "several pairs together";

/// Draws a value for an inline leaf array.
fn word(random: &mut Random) -> Bytes {
    vec![random.below(256) as u8; 8].into()
}

/// Returns a history that inserts these keys, and then runs forty operations, each drawn for one of them.
fn history(
    (seed, threads): (u64, u32),
    keys: &[Bytes],
    value: fn(&mut Random) -> Bytes,
    draw: impl Fn(Bytes, &mut Random) -> Op,
) -> History<Op> {
    let mut random = Random(seed);
    let inserts = keys.iter().map(|key| Op::Insert(key.clone(), value(&mut random)));
    let mut ops: Vec<Op> = inserts.collect();
    for _ in 0..40 {
        let key = random.pick(keys).clone();
        ops.push(draw(key, &mut random));
    }
    History {
        seed,
        ops,
        prepared: keys.len() as u32,
        threads,
        ..History::default()
    }
}

/// Returns a history that puts pairs in inline leaf arrays.
fn of_pairs(seed: u64, threads: u32) -> History<Op> {
    match seed % 3 {
        0 => of_full_lines(seed, threads),
        _ => of_several_arrays(seed, threads),
    }
}

/// Returns a history that puts pairs in several inline leaf arrays: present ones, new ones, and ones that make an array
/// grow or split. With odd seeds the keys lie so close together that lines fill up, and pairs overflow into lines after
/// their home lines.
fn of_several_arrays(seed: u64, threads: u32) -> History<Op> {
    let (begin, apart, width) = if seed.is_multiple_of(2) {
        (0, 40, 256)
    } else {
        (100, 1, 24)
    };
    let keys: Vec<Bytes> = (0..4u8)
        .flat_map(|array| (0..6u8).map(move |i| vec![b'a' + array, begin + i * apart].into()))
        .collect();
    history((seed, threads), &keys, word, |key, random| {
        match random.below(16) {
            0 => Op::Remove(key).together(),
            1 | 2 => Op::Get(key),
            3 => Op::Upsert(key, value(random)).together(),
            4..7 => Op::Insert(
                [&key[..1], &[begin + random.below(width) as u8]].concat().into(),
                word(random),
            )
            .together(),
            _ => Op::Upsert(key, word(random)).together(),
        }
    })
}

/// Returns a history that inserts pairs into one inline leaf array whose lines are nearly full: some pairs of a group
/// fill a line, and others of the group pass it.
fn of_full_lines(seed: u64, threads: u32) -> History<Op> {
    let keys: Vec<Bytes> = (b'0'..b'8').map(|byte| vec![b'a', byte].into()).collect();
    history((seed, threads), &keys, word, |_, random| {
        let key = vec![b'a', b's' + random.below(9) as u8].into();
        match random.below(8) {
            0 => Op::Get(key),
            _ => Op::Insert(key, word(random)).together(),
        }
    })
}

/// Returns a history that puts keys in leaf arrays with room and in nodes, new keys beside them, and keys that make an
/// array or node grow. Now and then a thread reads or removes.
fn of_puts(seed: u64, threads: u32) -> History<Op> {
    let arrays = (0..4u8).flat_map(|array| (0..4u8).map(move |i| vec![b'a' + array, b'-', i]));
    let alone = (0..6u8).map(|i| vec![b'A' + i, b'-', b'-']);
    let keys: Vec<Bytes> = arrays.chain(alone).map(Bytes::from).collect();
    history((seed, threads), &keys, value, |key, random| {
        match random.below(12) {
            0 => Op::Remove(key),
            1 => Op::Get(key),
            2 | 3 => Op::Upsert(
                [&key[..], &[random.below(8) as u8]].concat().into(),
                value(random),
            )
            .together(),
            _ => Op::Upsert(key, value(random)).together(),
        }
    })
}

/// A crash during such writes leaves all acknowledged ones and any subset of those in flight, and no answer shows data
/// that may be lost.
#[test]
fn writes_of_several_keys_survive_crashes() {
    for &kind in IndexKind::ALL
        .iter()
        .filter(|kind| kind.name().starts_with("roart"))
    {
        for mode in [Mode::Power, Mode::Word, Mode::Process] {
            let settings = Settings {
                model: MemoryModel::from(mode),
                ..Settings::default()
            };
            let histories = (0..6).map(|seed| of_puts(seed, 1 + seed as u32 % 3));
            let report = explore(claimed(kind, mode), settings, histories);
            assert!(report.states > 100, "{report}");
            let together = report.coverage.steps.get(PUTS_TOGETHER);
            assert!(together.is_some(), "{report}, {:?}", report.coverage.steps);
        }
    }
}

/// The same for pairs in inline leaf arrays.
#[test]
fn writes_of_several_pairs_survive_crashes() {
    for kind in [IndexKind::Roart, IndexKind::RoartStreaming] {
        for mode in [Mode::Power, Mode::Process] {
            let settings = Settings {
                model: MemoryModel::from(mode),
                ..Settings::default()
            };
            let histories = (0..9).map(|seed| of_pairs(seed, 1 + (seed / 3) as u32));
            let report = explore(kind, settings, histories);
            assert!(report.states > 100, "{report}");
            // Without marks (`RoartStreaming`), each pair is persisted by itself.
            let together = report.coverage.steps.contains_key(PAIRS_TOGETHER);
            assert_eq!(together, kind == IndexKind::Roart, "{report}");
        }
    }
}

/// Each persist of grouped writes is needed.
#[test]
fn persists_of_groups_are_needed() {
    // Of puts: the write-back and the fence of the leaves, and of the links. Of pairs: the write-back, the fence, and
    // the fence in the middle of a group.
    for (histories, persists) in [(of_puts as fn(u64, u32) -> History<Op>, 4), (of_pairs, 3)] {
        let settings = Settings {
            deep_share: 0,
            hunt_forgiven: false,
            ..Settings::default()
        };
        let mut explorer = Explorer::new(OfIndex::listed(IndexKind::Roart), settings).expect("memory");
        let histories = (0..12).map(|seed| histories(seed, 1 + seed as u32 % 3));
        let mut hunted = explorer.hunt(histories, 2000, |_| true).expect("no failure");
        hunted.retain(|one| {
            let file = one.mutant.site.file();
            ["together.rs", "inline.rs"]
                .iter()
                .any(|name| file.ends_with(&format!("roart/src/{name}")))
        });
        let unexplained: Vec<String> = hunted
            .iter()
            .filter(|one| one.is_unexplained())
            .map(ToString::to_string)
            // Removals of pairs are not grouped, and few meet a crash here.
            .filter(|one| !(one.starts_with("untried") && one.contains("roart/src/inline.rs")))
            .collect();
        assert_eq!(unexplained, [""; 0]);
        let killed = hunted.iter().filter(|one| one.is_killed()).count();
        assert!(killed >= persists, "{hunted:?}");
    }
}

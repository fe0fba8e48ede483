//! Keys beside an operation's path: below the same node, but away from the operation's own key.

use super::lines::lines_of;
use super::{Bed, Counted, Turn};
use crate::{Direction, Index};
use heap::Heap;
use pmem::LINE;

/// A string that is too long for a node to store, so that an operation needs a leaf below to compare it.
const STEM: &[u8] = b"a stem of 24 characters.";

/// A comb: its keys lead past a node for each tooth.
struct Comb {
    name: &'static str,
    back: u8,
    tooth: u8,
    teeth: usize,
    /// Keys of a tooth. If there are more than a leaf array holds, each node of the back has inner nodes only.
    keys: usize,
    /// Whether its first tooth comes before the numbered keys.
    is_first: bool,
}

const TEETH: usize = 1000;
const BUSHES: usize = 250;
const BUSH: usize = 80;

/// Combs for a search that turns to the lowest or the oldest child, and for one that turns to the highest or the
/// newest.
const COMBS: [Comb; 4] = [
    Comb::new("teeth above the back", (b'c', b'z'), (TEETH, 1), true),
    Comb::new("teeth below the back", (b'y', b'a'), (TEETH, 1), false),
    Comb::new("bushes above the back", (b'c', b'z'), (BUSHES, BUSH), true),
    Comb::new("bushes below the back", (b'y', b'a'), (BUSHES, BUSH), false),
];

/// How much more an operation may cost beside a comb: a scattered way down passes some nodes, each of up to tens of
/// lines.
const MAX_FACTOR: u64 = 2;
const MORE: u64 = 150;

/// Maximum lines of a check of the structure for each line of the keys, and for each key.
const CHECK_A_LINE: u64 = 3;
const CHECK_A_KEY: u64 = 20;

/// Writes and scans cost as much as before once a comb beside their keys, below the same stem, has become hundreds of
/// nodes deep; and the cost of checking the structure is proportional to the keys.
///
/// # Panics
///
/// If an operation costs more.
pub fn keys_beside_the_path_cost_nothing<I: crate::OnHeap<Media = Counted>>(
    make: impl Fn(&Heap<Counted>) -> I,
) {
    let _alone = Turn::take();
    let mut over = Vec::new();
    for comb in COMBS {
        Bed::new(&make).measure_beside(&comb, &mut over);
    }
    assert!(over.is_empty(), "keys beside the path cost:\n{}", over.join("\n"));
}

impl Comb {
    const fn new(
        name: &'static str,
        (back, tooth): (u8, u8),
        (teeth, keys): (usize, usize),
        is_first: bool,
    ) -> Comb {
        Comb {
            name,
            back,
            tooth,
            teeth,
            keys,
            is_first,
        }
    }

    /// The keys of the teeth, the first tooth first.
    fn keys(&self) -> impl Iterator<Item = Vec<u8>> {
        let tooth = |len: usize| [STEM, &vec![self.back; len], &[self.tooth]].concat();
        (1..=self.teeth).flat_map(move |len| {
            let tooth = tooth(len);
            (0..self.keys).map(move |number| [&tooth[..], format!("{number:02}").as_bytes()].concat())
        })
    }
}

impl<I: crate::OnHeap<Media = Counted>> Bed<I> {
    /// Measures operations at numbered keys beside the comb's first tooth, and then beside the whole comb.
    fn measure_beside(&self, comb: &Comb, over: &mut Vec<String>) {
        let mut keys: Vec<_> = comb.keys().take(comb.keys).collect();
        let numbered = (100..400).map(|number| [STEM, format!("q{number}").as_bytes()].concat());
        let at = if comb.is_first { keys.len() } else { 0 };
        keys.splice(at..at, numbered);
        keys.iter().for_each(|key| _ = self.insert(key));
        let alone = self.costs();
        let rest: Vec<_> = comb.keys().skip(comb.keys).collect();
        rest.iter().for_each(|key| _ = self.insert(key));
        keys.extend(rest);
        println!("{}", comb.name);
        let mut hold = |what: &str, lines: u64, max: u64| {
            println!("  {what}: {lines} lines, at most {max}");
            if lines > max {
                over.push(format!("{}, {what}: {lines} lines, at most {max}", comb.name));
            }
        };
        for ((what, before), (_, after)) in alone.into_iter().zip(self.costs()) {
            hold(&what, after, MAX_FACTOR * before + MORE);
        }
        let (lines, faults) = lines_of(|| self.index.find_faults());
        assert!(faults.found.is_empty(), "{:?}", faults.found);
        let of_keys: usize = keys.iter().map(|key| key.len().div_ceil(LINE)).sum();
        hold(
            "check of the structure",
            lines,
            CHECK_A_LINE * of_keys as u64 + CHECK_A_KEY * keys.len() as u64,
        );
    }

    /// The costs of operations at and beside the numbered keys, which leave the keys as they are.
    fn costs(&self) -> Vec<(String, u64)> {
        let below = |rest: &[u8]| [STEM, rest].concat();
        let mut costs = Vec::new();
        let within = [&STEM[..12], b"\x7f"].concat();
        for (place, key) in [
            ("among keys", below(b"q17")),
            ("in an empty slot", below(b"x")),
            ("within the stem", within),
        ] {
            costs.push((
                format!("remove of an absent key {place}"),
                self.absent_remove(&key),
            ));
            costs.push((format!("insert {place}"), self.insert(&key)));
            costs.push((format!("remove {place}"), self.remove(&key)));
        }
        for start in ["q200", "n"] {
            let lines = self.scan(&below(start.as_bytes()), Direction::Forward);
            costs.push((format!("scan from {start}"), lines));
        }
        let reverse = self.scan(&below(b"q300"), Direction::Reverse);
        costs.push(("scan in reverse".to_owned(), reverse));
        costs
    }

    fn absent_remove(&self, key: &[u8]) -> u64 {
        let (lines, done) = lines_of(|| self.index.remove(key));
        assert!(!done.expect("no error"), "removed {}", key.escape_ascii());
        lines
    }
}

//! Indexes built from sorted pairs: what a pair costs, and keys that are special to one index.
//!
//! The heap's own persists are counted separately.

use heap::Heap;
use index::conformance::{Random, settled};
use index::{Bulk, Error, Index, Parts, Sorted};
use pmem::{Counting, Hardware, Pool, PoolOptions};
use std::collections::BTreeMap;
use wollemi_recipe::{BwTree, Clht, Hot, Masstree};

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

fn heap_of(media: Counting) -> Heap<Counting> {
    let options = PoolOptions {
        max_size: 1 << 30,
        ..PoolOptions::default()
    };
    Heap::new(Pool::anonymous(&options, media).expect("a pool")).expect("a heap")
}

/// Random keys of this length, with values of that one.
fn pairs(count: usize, key: usize, value: usize) -> Pairs {
    let mut random = Random::new(7);
    std::iter::repeat_with(|| (random.bytes(key), random.bytes(value)))
        .take(count)
        .collect()
}

/// Write-backs, fences and bytes a pair of a build.
struct PairCost {
    /// Lines written back, each counted once before a fence.
    lines: f64,
    write_backs: f64,
    fences: f64,
    bytes: f64,
}

/// Builds an index that must hold exactly these pairs, and returns the costs.
fn cost<I: Bulk<Media = Counting>>(pairs: &Pairs) -> PairCost {
    let media = Counting::new(Hardware::detect());
    let heap = heap_of(media.clone());
    let (used, before) = (settled(&heap).used, media.counts());
    let index = I::build(&heap, b"built", Parts::new(&mut Sorted::new(pairs))).expect("room");
    let counts = (media.counts() - before).node;
    let a_pair = |number: u64| number as f64 / pairs.len() as f64;
    let cost = PairCost {
        lines: a_pair(counts.lines),
        write_backs: a_pair(counts.write_backs),
        fences: a_pair(counts.fences),
        bytes: a_pair(settled(&heap).used - used),
    };
    holds(&index, pairs);
    println!(
        "{} pairs: {:.3} write-backs, {:.5} fences, {:.1} bytes a pair",
        pairs.len(),
        cost.write_backs,
        cost.fences,
        cost.bytes
    );
    cost
}

/// The index is sound, and holds exactly these pairs.
fn holds(index: &dyn Index, pairs: &Pairs) {
    let faults = index.check().expect("sound");
    assert_eq!(
        (faults.found, faults.keys),
        (Vec::<String>::new(), pairs.len() as u64)
    );
    let guard = heap::pin();
    for (key, value) in pairs {
        let found = index.get(key, &guard).expect("sound");
        assert_eq!(found.as_deref(), Some(&value[..]));
    }
}

/// A build of P-Masstree writes each line once: those of borders of twelve entries, and of an inner node for each
/// twelve of these. All share one fence; the other one is that of the name.
#[test]
fn masstree_costs_a_third_of_a_line() {
    let count = 100_000;
    let PairCost {
        lines,
        write_backs,
        fences,
        bytes,
    } = cost::<Masstree<Counting>>(&pairs(count, 8, 8));
    assert_eq!(write_backs, lines);
    assert!(
        write_backs < 4.0 / 12.0 * 12.0 / 11.0 + 0.001,
        "{write_backs} write-backs"
    );
    assert!(bytes < 256.0 / 12.0 * 12.0 / 11.0 + 0.1, "{bytes} bytes");
    assert_eq!(fences, 2.0 / count as f64);
    // A leaf of 16 + 24 + 8 bytes, and the entry with the link to it.
    let PairCost {
        write_backs, fences, ..
    } = cost::<Masstree<Counting>>(&pairs(count, 24, 8));
    assert!(
        write_backs < 1.0 + 4.0 / 11.0 + 0.001,
        "{write_backs} write-backs"
    );
    assert_eq!(fences, 2.0 / count as f64);
}

/// A build of P-CLHT writes each line once: those of tables with up to four pairs a bucket. A directory with its
/// tables, or a table beside larger directories, has one fence, and so have 1024 records.
#[test]
fn clht_costs_its_lines() {
    let mut sum = 0.0;
    for count in [20_000, 50_000, 100_000, 200_000, 400_000] {
        let PairCost {
            lines,
            write_backs,
            fences,
            bytes,
        } = cost::<Clht<Counting>>(&pairs(count, 8, 8));
        assert_eq!(write_backs, lines);
        assert!(write_backs < 0.7, "{write_backs} write-backs");
        assert!(fences < 0.002, "{fences} fences");
        assert!((bytes - 64.0 * write_backs).abs() < 2.0, "{bytes} bytes");
        sum += write_backs / 5.0;
    }
    assert!(sum < 0.63, "{sum} write-backs on average");
    let PairCost { fences, .. } = cost::<Clht<Counting>>(&pairs(100_000, 9, 8));
    assert!(fences < 0.002, "{fences} fences");
}

/// A build of P-BwTree: a leaf of 56 pairs takes 16 lines, its cell's among them, and a row of 16 leaves one fence. A
/// record of 48 bytes takes one line more; the records of a row take one fence more.
#[test]
fn bwtree_costs_its_leaves() {
    for (key, lines, a_pair) in [(8, 0.32, 0.0013), (24, 1.32, 0.0025)] {
        let PairCost {
            write_backs, fences, ..
        } = cost::<BwTree<Counting>>(&pairs(60_000, key, 8));
        assert!(
            write_backs <= lines && fences <= a_pair,
            "{write_backs}, {fences}"
        );
    }
}

/// A build of P-HOT: a leaf of 24 bytes takes half a line, one of 40 bytes a line, and a key's share of the nodes a
/// fifth. All share a fence; the others are those of the root and the name.
#[test]
fn hot_costs_its_leaves() {
    for (key, lines) in [(8, 0.75), (24, 1.25)] {
        let PairCost {
            write_backs, fences, ..
        } = cost::<Hot<Counting>>(&pairs(60_000, key, 8));
        assert!(
            write_backs <= lines && fences <= 0.0002,
            "{write_backs}, {fences}"
        );
    }
}

/// Keys that differ only in how many zeros they end with share a slice, and stay in one border, wherever borders end.
#[test]
fn keys_with_one_slice_share_a_border() {
    for zeros in 0..=9 {
        for skipped in 0..13_u8 {
            let mut pairs: Pairs = (0..skipped)
                .map(|i| (vec![1, i, 1], b"in place".to_vec()))
                .collect();
            for i in 0..60_u8 {
                pairs.extend((0..=zeros).map(|len| {
                    let key = [&[2, i], &vec![0; len][..]].concat();
                    (key, vec![i; if len % 2 == 0 { 8 } else { 3 }])
                }));
            }
            let heap = heap_of(Counting::new(Hardware::detect()));
            let index = Masstree::build(&heap, b"built", Parts::new(&mut Sorted::new(&pairs))).expect("room");
            holds(&index, &pairs);
        }
    }
}

/// A P-CLHT is built from pairs in any order, but not with a key twice, whether the pairs are stored in place or not.
#[test]
fn clht_refuses_a_key_twice() {
    let heap = heap_of(Counting::new(Hardware::detect()));
    for (key, value) in [(8, 8), (8, 5), (20, 8)] {
        let pairs = pairs(3000, key, value);
        let mut list: Vec<_> = pairs.clone().into_iter().collect();
        Random::new(3).shuffle(&mut list);
        let index = Clht::build(
            &heap,
            format!("{key} {value}").as_bytes(),
            Parts::new(&mut Sorted::new(list.clone())),
        );
        holds(&index.expect("room"), &pairs);
        let before = settled(&heap).objects;
        for value in [b"in place".to_vec(), b"record".to_vec()] {
            let mut twice = list.clone();
            twice.push((list[1000].0.clone(), value));
            let failed = Clht::build(&heap, b"twice", Parts::new(&mut Sorted::new(twice))).map(drop);
            assert!(matches!(failed, Err(Error::OutOfOrder)), "{failed:?}");
            assert_eq!(settled(&heap).objects, before);
        }
    }
}

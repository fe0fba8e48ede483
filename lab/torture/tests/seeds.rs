//! Histories that once failed, because of the index or because of its judge.

use crashkit::{Crash, Explorer, Settings};
use index::{Index, OnHeap};
use wollemi_torture::history::of_map;
use wollemi_torture::map::OfIndex;

/// The root's name. It is too long to share a line with the root's link.
const ROOT: &[u8] = &[b'r'; 100];

/// Explores the same history as `light --index … --seed … --history …`.
fn explore<I: OnHeap<Media = Crash> + Index + 'static>(
    seed: u64,
    history: u64,
    (operations, threads): (usize, u32),
) {
    let subject = OfIndex::new(
        "an index",
        |heap| Ok(Box::new(I::create(heap, ROOT)?)),
        |heap| Ok(I::open(heap, ROOT)?.map(|index| Box::new(index) as Box<dyn Index>)),
        vec![I::tracer()],
    );
    let settings = Settings {
        seed,
        aimed: 8,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(subject, settings).expect("memory");
    let explored = explorer.explore(&of_map(history, operations, threads));
    explored.unwrap_or_else(|failure| panic!("{failure}"));
}

/// If the pool is too full for the judge to restore a value that it removed, it must not report a loss.
#[test]
fn a_pool_too_full_for_its_judge_has_lost_nothing() {
    explore::<recipe::hot::Hot<Crash>>(770_000, 770_556, (8, 1));
}

/// A removal in a full pool that would merge or shrink a node, which needs memory, leaves that out instead of retrying
/// forever.
#[test]
fn a_remove_waits_for_no_memory() {
    explore::<roart::Roart<Crash, roart::Full>>(899_919, 900_213, (9, 3));
    explore::<roart::Roart<Crash, roart::Full>>(799_928, 800_091, (8, 4));
}

//! Histories that once failed, whether the index was wrong or its judge.

use crashkit::{Crash, Explorer, Settings};
use index::{Index, OnHeap};
use wollemi_torture::history::of_map;
use wollemi_torture::map::OfIndex;

/// Longer than what shares a line with the root's link.
const ROOT: &[u8] = &[b'r'; 100];

/// Explores the history that `light --index … --seed … --history …` does.
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

/// Where the pool is too full to take back a value that the judge has removed, the index has lost nothing.
#[test]
fn a_pool_too_full_for_its_judge_has_lost_nothing() {
    explore::<recipe::hot::Hot<Crash>>(770_000, 770_556, (8, 1));
}

/// A remove that tidies a node in a full pool gives up what takes memory, and does not try again and again.
#[test]
fn a_remove_waits_for_no_memory() {
    explore::<roart::Roart<Crash, roart::Full>>(899_919, 900_213, (9, 3));
    explore::<roart::Roart<Crash, roart::Full>>(799_928, 800_091, (8, 4));
}

//! Persists of P-Masstree and P-BwTree that matter in narrow places only are needed: the histories that reach these
//! places detect that one is missing.

use crashkit::{Crash, Explorer, Hunted, Lacks, Mutant, Settings};
use index::{Index, OnHeap};
use recipe::{BwTree, Masstree};
use wollemi_torture::history;
use wollemi_torture::map::OfIndex;

/// The name of the index's root: too long to share a line with the root's link.
const ROOT: &[u8] = &[b'r'; 100];

/// The maximum number of images of one mutant judged in one history, before a second crash and again after it.
const IMAGES: u64 = 300;

fn of<I: Index + OnHeap<Media = Crash> + 'static>(name: &str) -> OfIndex {
    OfIndex::new(
        name,
        |heap| Ok(Box::new(I::create(heap, ROOT)?)),
        |heap| Ok(I::open(heap, ROOT)?.map(|index| Box::new(index) as Box<dyn Index>)),
        vec![I::tracer()],
    )
}

/// Hunts these mutants along this many rare histories.
fn hunt(
    subject: OfIndex,
    histories: impl IntoIterator<Item = u64>,
    hunted: fn(&Mutant) -> bool,
) -> Vec<Hunted> {
    let settings = Settings {
        deep_share: 4,
        aimed: 0,
        hunt_forgiven: false,
        hunted,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(subject, settings).expect("memory");
    let histories = histories.into_iter().map(history::rare_of_map);
    let all = explorer.hunt(histories, IMAGES, |_| true).expect("no failure");
    println!("{}", explorer.report());
    for one in &all {
        println!("{one} ({:?})", one.reason);
    }
    all
}

/// Returns whether the mutant lacks this at a place of the file.
fn lacks(mutant: &Mutant, file: &str, lacks: Lacks) -> bool {
    mutant.lacks == lacks && mutant.site.file().ends_with(&format!("recipe/src/{file}.rs"))
}

/// Asserts that at least this many were detected, and that each of the others has a reason.
fn assert_needed(all: &[Hunted], least: usize) {
    let unexplained: Vec<String> = all
        .iter()
        .filter(|one| one.is_unexplained())
        .map(ToString::to_string)
        .collect();
    assert_eq!(unexplained, [""; 0]);
    let killed = all.iter().filter(|one| one.is_killed()).count();
    assert!(killed >= least, "{killed}");
}

/// P-Masstree: the words that a reader persists beside a writer; the link to a split's sibling; the order in which a
/// node and its only child are removed; the entry of an empty layer.
#[test]
fn persists_of_masstree_are_needed() {
    let all = hunt(of::<Masstree<Crash>>("masstree"), 0..60, |mutant| {
        lacks(mutant, "masstree/node", Lacks::WriteBack)
            || lacks(mutant, "masstree/shrink", Lacks::Order)
            || ["masstree/split", "masstree/tidy"]
                .iter()
                .any(|file| lacks(mutant, file, Lacks::WriteBack) || lacks(mutant, file, Lacks::Fence))
    });
    assert_needed(&all, 18);
}

/// P-BwTree: the marks of a merge and of a root's only child, and that child's new cell.
#[test]
fn persists_of_bwtree_are_needed() {
    let all = hunt(of::<BwTree<Crash>>("bwtree"), 0..60, |mutant| {
        lacks(mutant, "bwtree/merge", Lacks::WriteBack) || lacks(mutant, "bwtree/merge", Lacks::Fence)
    });
    assert_needed(&all, 12);
}

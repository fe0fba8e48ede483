//! The worked example of `docs/convert.md`: each step of the conversion but the last fails as the page says.

#[path = "../examples/convert/added.rs"]
mod added;
#[path = "../examples/convert/node.rs"]
mod node;
#[path = "../examples/convert/step.rs"]
mod step;
#[path = "../examples/convert/subject.rs"]
mod subject;
#[path = "../examples/convert/tree.rs"]
mod tree;

use step::{Dram, LockMeansCrash, LockMeansHelp, Marked, Mended, Persisted, RootNotPersisted, Step, Whole};
use subject::{FEW_KEYS, KEYS, accounted, try_step, unaccounted};
use tree::BLink;
use wollemi_crashkit::words::OfWordMap;
use wollemi_crashkit::{Crash, Failure, silence_findings};

const DOCUMENT: &str = include_str!("../../../docs/convert.md");

/// Asserts that a step fails, and that the document quotes the failure: in a block that begins with the same line and
/// has lines of the failure in order, with a line of dots in place of those left out. Returns the failure.
fn finds<S: Step>(
    subject: OfWordMap<BLink<Crash, S>>,
    (threads, keys): (u32, u64),
    says: &str,
) -> Box<Failure> {
    silence_findings();
    let failure = match try_step(subject, threads, keys) {
        Ok(report) => panic!("nothing was found: {report}"),
        Err(failure) => failure,
    };
    assert!(failure.message.contains(says), "{failure}");
    // This test names the example's sources by paths from `tests`.
    let found = without_engine_lines(&failure.to_string().replace("tests/../", ""));
    assert!(is_quoted(&found), "docs/convert.md should quote:\n{found}");
    failure
}

/// Removes the line and column behind each path of the engine (`crates/…`): they change with code that the example does
/// not show.
fn without_engine_lines(found: &str) -> String {
    let mut parts = found.split("crates/");
    let mut kept = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (path, rest) = part.split_once(".rs:").expect("a path has a line");
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
        kept += &format!("crates/{path}.rs{rest}");
    }
    kept
}

fn is_quoted(found: &str) -> bool {
    let first = found.lines().next().unwrap_or_default();
    let mut blocks = DOCUMENT
        .split("```text\n")
        .filter_map(|block| block.split("```").next());
    blocks.any(|block| {
        let mut lines = found.lines();
        let mut open = false;
        block.starts_with(first)
            && block.lines().all(|line| match line.trim() {
                "..." => {
                    open = true;
                    true
                }
                _ if std::mem::take(&mut open) => lines.any(|other| other == line),
                _ => lines.next() == Some(line),
            })
            && (open || lines.next().is_none())
    })
}

/// Step 0: acknowledged changes are lost with the cache.
#[test]
fn an_index_in_dram_loses_what_it_answered() {
    let failure = finds(unaccounted::<Dram>(), (1, KEYS), "instead of");
    assert!(!failure.missing.is_empty() && failure.crashes == 1, "{failure}");
}

/// Step 1: a reader answers with a value that a crash can still undo.
#[test]
fn an_index_without_marks_has_dirty_reads() {
    let failure = finds(unaccounted::<Persisted>(), (2, FEW_KEYS), "dirty read");
    assert_eq!(failure.crashes, 0, "{failure}");
}

/// Step 1, by one thread: there is no dirty read, but half a split.
#[test]
fn half_a_split_needs_no_second_thread() {
    silence_findings();
    let failure = try_step(unaccounted::<Persisted>(), 1, KEYS);
    let failure = failure.expect_err("nothing mends");
    assert!(failure.message.contains("after recovery, when"), "{failure}");
}

/// Step 2: half a split stays, and a removed key comes back from it.
#[test]
fn an_index_whose_writers_do_not_mend_has_half_a_split() {
    finds(unaccounted::<Marked>(), (1, KEYS), "after recovery, when");
}

/// Step 3: replaced objects are never freed; except for that, the step is correct.
#[test]
fn an_index_that_retires_nothing_leaks() {
    finds(accounted::<Mended>(), (1, KEYS), "the heap's audit found");
    for threads in [1, 2] {
        let run = try_step(unaccounted::<Mended>(), threads, KEYS);
        let report = run.unwrap_or_else(|failure| panic!("{failure}"));
        assert!(report.states > 10_000, "{report}");
    }
}

/// Step 4: the kit finds nothing.
#[test]
fn the_whole_conversion_survives() {
    for threads in 1..=3 {
        let run = try_step(accounted::<Whole>(), threads, KEYS);
        let report = run.unwrap_or_else(|failure| panic!("{failure}"));
        assert!(report.states > 10_000 && report.again > 500, "{report}");
    }
}

/// A wrong way: a writer that gets the lock assumes that a crash has happened, and trusts what it saw before.
#[test]
fn a_lock_that_means_a_crash_is_found() {
    let wrong = unaccounted::<LockMeansCrash>();
    finds(wrong, (2, KEYS), "instead of");
}

/// A wrong way: a writer that does not get the lock goes past half a split, and adds the separator too early.
#[test]
fn a_lock_that_means_help_is_found() {
    let wrong = unaccounted::<LockMeansHelp>();
    let failure = finds(wrong, (2, KEYS), "after recovery, when");
    assert_eq!(failure.threads, 2, "{failure}");
}

/// A wrong way: the constructor does not persist the first node.
#[test]
fn a_root_that_is_not_persisted_is_found() {
    let wrong = accounted::<RootNotPersisted>();
    finds(wrong, (1, KEYS), "does not lead to a node");
}

wollemi_crashkit::word_map_tests! {
    whole: BLink<Crash, Whole>,
}

/// The document quotes the sources as they stand.
#[test]
fn the_documents_code_is_this() {
    let added = include_str!("../examples/convert/added.rs");
    for name in ["store", "swing", "locked", "mend", "help", "retire"] {
        let begin = [format!("    pub fn {name}"), format!("    fn {name}")];
        let begin = begin.iter().find_map(|begin| added.find(begin.as_str()));
        let code = &added[begin.expect("it is there")..];
        let code = &code[..code.find("\n    }\n").expect("it ends")];
        assert!(DOCUMENT.contains(code), "docs/convert.md should quote:\n{code}");
    }
}

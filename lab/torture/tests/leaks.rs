//! The kit detects the unreachable objects of a leaking index.

use crashkit::{Crash, Explorer, Failure, Report, Settings};
use heap::Heap;
use index::{Action, Edit, Error, Index};
use pmem::{PWord, Purpose, persist_scope};
use wollemi::indexes::{IndexKind, WithIndex};
use wollemi_torture::history;
use wollemi_torture::map::OfIndex;

/// When the index leaks an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaks {
    Never,
    /// At each opening.
    AtOpening,
    /// At each update, as if the old leaf were not retired.
    AtUpdates,
}

/// A ROART that leaks.
struct Leaking {
    inner: Box<dyn Index>,
    heap: Heap<Crash>,
    leaks: Leaks,
}

/// Wraps an index so that it leaks.
struct MakeLeaking(Heap<Crash>, Leaks);

impl WithIndex for MakeLeaking {
    type Out = Box<dyn Index>;
    fn with<I: Index + 'static>(self, index: I) -> Box<dyn Index> {
        let MakeLeaking(heap, leaks) = self;
        Box::new(Leaking {
            inner: Box::new(index),
            heap,
            leaks,
        })
    }
}

impl Index for Leaking {
    index::delegate!(inner: get, scan, check);

    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let present = self.get(key, &heap::pin())?.is_some();
        let action = self.inner.write(key, edit)?;
        if self.leaks == Leaks::AtUpdates && present && action == Action::Put {
            leak(&self.heap);
        }
        Ok(action)
    }
}

fn leak(heap: &Heap<Crash>) {
    let _link = persist_scope(heap.media(), Purpose::Node, |batch| {
        let draft = heap.draft(PWord::new(1), 0, &batch).expect("room");
        let flushed = draft.flush(&batch);
        flushed.persisted(&batch.fence()).into_link(pmem::Tag::default())
    });
}

/// Explores a few histories until one fails, and judges one in twenty images deeply.
fn explore(leaks: Leaks) -> (Result<(), Box<Failure>>, Report) {
    const ROOT: &[u8] = b"leaking";
    let kind = IndexKind::Roart;
    let create = move |heap: &Heap<Crash>| kind.create(heap, ROOT, MakeLeaking(heap.clone(), leaks));
    let open = move |heap: &Heap<Crash>| {
        if leaks == Leaks::AtOpening {
            leak(heap);
        }
        kind.open(heap, ROOT, MakeLeaking(heap.clone(), leaks))
    };
    let subject = OfIndex::new("leaking", create, open, IndexKind::tracers());
    let settings = Settings {
        deep_share: 20,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(subject, settings).expect("memory");
    let found = (1..8).try_for_each(|seed| explorer.explore(&history::of_map(seed, 10, 1)));
    (found, explorer.into_report())
}

/// The kit detects an allocated object that no link leads to: the heap's accounts do after recovery, its audit after
/// use.
#[test]
fn leaks_are_found() {
    let (found, report) = explore(Leaks::Never);
    assert!(found.is_ok() && report.states > 100, "{report}");
    for (leaks, says) in [
        (Leaks::AtOpening, "the heap's accounts"),
        (Leaks::AtUpdates, "the heap's audit"),
    ] {
        let (found, report) = explore(leaks);
        let failure = found.expect_err("it leaks");
        assert!(failure.message.contains(says), "{failure}");
        assert!(report.states < 1000, "{report}");
    }
}

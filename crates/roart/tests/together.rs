//! Writes of several keys at once: what they cost, and what others see amid them.

use heap::Heap;
use index::{Action, Edit, Edits, Error, Index, Upsert};
use pmem::watched::{self, Watch, What};
use pmem::{Counting, Hardware, LINE, Media, Persists, Pool, PoolOptions, Purpose, Watched};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use wollemi_roart::{Full, Roart, Streaming, Variant, WithoutEc, WithoutInline, WithoutLc};

/// A leaf of a line, with a key of up to 16 bytes.
const OLD: &[u8] = b"a value of 24 bytes, old";
const NEW: &[u8] = b"a value of 24 bytes, new";

/// Upserts of as many keys.
struct Upserts(Vec<Upsert<'static>>);

impl Edits for Upserts {
    fn edit(&mut self, i: usize) -> &mut dyn Edit {
        &mut self.0[i]
    }
    fn done(&mut self, _: usize, done: Result<Action, Error>) -> ControlFlow<()> {
        assert_eq!(done.expect("there is room"), Action::Put);
        ControlFlow::Continue(())
    }
}

fn upsert(index: &dyn Index, keys: &[String], value: &'static [u8]) {
    let all: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    index.write_many(&all, &mut Upserts(all.iter().map(|_| Upsert(value)).collect()));
}

fn roart<M: Media, V: Variant>(media: M) -> Roart<M, V> {
    let pool = Pool::anonymous(&PoolOptions::default(), media).expect("a pool");
    let heap = Heap::new(pool).expect("a heap");
    Roart::create(&heap, b"together").expect("an index")
}

/// Sixteen keys: leaves in nodes, and, where there are leaf arrays, several in one.
fn keys() -> Vec<String> {
    let alone = (b'a'..b'h').map(|byte| format!("{} alone", char::from(byte)));
    let beside = (0..9).map(|i| format!("p beside {i}"));
    alone.chain(beside).collect()
}

fn cost<V: Variant>(keys: &[String]) -> (Persists, u64) {
    let media = Counting::new(Hardware::detect());
    let index = roart::<_, V>(media.clone());
    upsert(&index, &self::keys(), OLD);
    let before = media.counts();
    upsert(&index, keys, NEW);
    let counts = media.counts() - before;
    let guard = heap::pin();
    for key in keys {
        let held = index.get(key.as_bytes(), &guard).expect("no error");
        assert_eq!(held.as_deref(), Some(NEW), "{key}");
    }
    assert!(index.check().expect("no error").found.is_empty());
    (counts.node, counts.non_temporal)
}

/// Puts that replace leaves, or join a leaf array with room, have one fence for their leaves and one for the links to them;
/// each leaf is a line, and links that stand in a line are written back as one.
#[test]
fn puts_share_two_fences() {
    fn assert_shared<V: Variant>() {
        let keys = keys();
        let (node, _) = cost::<V>(&keys);
        assert_eq!(node.fences, 2);
        let links = node.write_backs - keys.len() as u64;
        // Seven in the root, 2 KiB; the others in an array of 14, or in nodes of up to 16.
        assert!((2..=7 + 4).contains(&links), "{links} lines of links");
    }
    assert_shared::<Full>();
    assert_shared::<WithoutInline>();
    assert_shared::<WithoutEc>();
    assert_shared::<WithoutLc>();
    let (streamed, past) = cost::<Streaming>(&keys());
    assert_eq!((streamed.fences, streamed.write_backs, past), (2, 16, 16));

    let joining: Vec<_> = (0..4).map(|i| format!("p beside x{i}")).collect();
    let (node, _) = cost::<Full>(&joining);
    assert_eq!(node.fences, 2);
    assert!((5..=6).contains(&node.write_backs), "{node:?}");
}

/// What does something else, as a key that comes twice, a value of eight bytes in its place, or a key that makes a node, is
/// done by itself, and the others go together before and after it.
#[test]
fn what_goes_alone_divides_the_others() {
    let fences = |keys: &[&str]| {
        let keys: Vec<_> = keys.iter().map(|&key| key.to_owned()).collect();
        cost::<Full>(&keys).0.fences
    };
    assert_eq!(fences(&["a alone", "b alone", "a alone", "c alone"]), 2 + 2 + 2);
    assert_eq!(fences(&["p beside x", "p beside x", "c alone"]), 2 + 2 + 2);
    assert_eq!(fences(&["a alone", "b alone", "z", "c alone"]), 2 + 2 + 2);
}

type Hook = Box<dyn FnMut(&'static str)>;

thread_local! {
    /// What this thread calls at its steps.
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Calls the thread's hook after each fence for an index's own objects, before the first store of a link too.
struct Looks;

impl Watch for Looks {
    fn after(&self, step: &watched::Step) {
        let name = match step.what {
            What::Fence(Purpose::Node) => "fence",
            What::Store => "store",
            _ => return,
        };
        // Whoever looks has steps, too, and none of them is looked at.
        if let Some(mut hook) = HOOK.take() {
            hook(name);
            HOOK.set(Some(hook));
        }
    }
}

/// At every step of a group others find each key with its old value or its new one, and with the new one for good; and
/// where the first link is stored all leaves are behind the first fence.
#[test]
fn others_see_old_or_new() {
    let index = Arc::new(roart::<_, Full>(Watched::machine(Looks)));
    upsert(&*index, &keys(), OLD);
    let (tell, steps) = std::sync::mpsc::channel();
    let looking = Arc::clone(&index);
    HOOK.set(Some(Box::new(move |step| {
        let guard = heap::pin();
        let is_new = |key: &String| {
            let held = looking.get(key.as_bytes(), &guard).expect("no error");
            let held = held.as_deref().expect("it is there all the while");
            assert!(held == NEW || held == OLD, "{key}");
            held == NEW
        };
        let new: Vec<bool> = keys().iter().map(is_new).collect();
        tell.send((step, new)).expect("somebody waits");
    })));
    upsert(&*index, &keys(), NEW);
    HOOK.set(None);
    let steps: Vec<_> = steps.iter().collect();
    let (_, first) = steps.iter().find(|(step, _)| *step == "fence").expect("a fence");
    assert!(!first.contains(&true), "a link before the leaves' fence");
    for two in steps.windows(2) {
        let went_back = two[0]
            .1
            .iter()
            .zip(&two[1].1)
            .any(|(before, after)| *before && !after);
        assert!(!went_back, "a key's old value has come back");
    }
    let (_, last) = steps.last().expect("steps");
    assert!(!last.contains(&false));
    assert!(keys().iter().all(|key| key.len() + OLD.len() + 16 <= LINE));
}

//! P-ART's changes, step by step: a crash, a reader at each, and the paper's order of steps (RECIPE §6.4).

use index::conformance::IndexInFile;
use index::conformance::steps::Stepping;
use index::{Index, OnHeap};
use pmem::watched::{self, Observer, StepKind};
use pmem::{Link, Purpose, Watched};
use std::cell::RefCell;
use wollemi_recipe::Part;

index::conformance_step_by_step! {
    part: Part<Stepping>, Part;
}

thread_local! {
    /// The steps of this thread on the index's objects, with their addresses.
    static STEPS: RefCell<Vec<(StepKind, usize)>> = const { RefCell::new(Vec::new()) };
}

/// Records each step that changes something that other threads can see, or makes it durable.
struct Notes;

impl Observer for Notes {
    fn after(&self, step: &watched::ObservedStep) {
        use StepKind::{Fence, Store, StoreUnpersisted, WriteBack, WriteBackJoined};
        if let Store
        | StoreUnpersisted
        | WriteBack(Purpose::Node)
        | WriteBackJoined(Purpose::Node)
        | Fence(Purpose::Node) = step.what
        {
            STEPS.with_borrow_mut(|steps| steps.push((step.what, step.start.addr())));
        }
    }
}

type Media = Watched<Notes>;

/// An object that existed before a change.
struct Object {
    name: &'static str,
    start: usize,
    len: usize,
}

/// The name of any other object.
const NEW: &str = "new";

/// A tree whose root has one child.
struct Rig(IndexInFile<Part<Media>>);

const VALUE: &[u8] = b"8 bytes!";

impl Rig {
    /// A rig whose node has this many children, under the bytes from 0, and is preceded by `prefix`.
    fn with(prefix: &[u8], children: u8) -> Rig {
        let rig = Rig(IndexInFile::create_on(Watched::machine(Notes)));
        for byte in 0..children {
            rig.put(&[prefix, &[byte]].concat());
        }
        rig
    }

    fn put(&self, key: &[u8]) {
        assert!(self.0.index().insert(key, VALUE).expect("no error"));
    }

    fn remove(&self, key: &[u8]) {
        assert!(self.0.index().remove(key).expect("no error"));
    }

    /// The object at a link, with this name; and its last child.
    fn object(&self, name: &'static str, link: Link) -> (Object, Option<Link>) {
        // SAFETY: no thread writes.
        let heap = unsafe { self.0.index().heap().access() };
        let mut below = Vec::new();
        let tracer = Part::<Media>::tracer();
        let len = tracer.trace(heap, link, &mut below).expect("sound") as usize;
        let at = link.offset().expect("not null").get() as usize;
        let start = heap.pool().base().addr().get() + at;
        (Object { name, start, len }, below.pop())
    }

    /// The root, and the node below it.
    fn objects(&self) -> Vec<Object> {
        let (root, node) = self.object("root", self.0.index().root());
        let node = node.map(|link| self.object("node", link).0);
        std::iter::once(root).chain(node).collect()
    }

    /// The steps of a change.
    fn steps(&self, change: impl FnOnce(&Rig)) -> Vec<String> {
        self.steps_to(&self.objects(), change)
    }

    /// The steps of a change on these objects and new ones: stores, by object and offset (`note` for those that need
    /// not be durable); and the lines that a fence makes durable, those of new objects as one.
    fn steps_to(&self, objects: &[Object], change: impl FnOnce(&Rig)) -> Vec<String> {
        let name = |address: usize| {
            let place = |object: &Object| {
                let at = address.checked_sub(object.start)?;
                (at < object.len).then(|| format!("{}+{at}", object.name))
            };
            objects.iter().find_map(place).unwrap_or(NEW.into())
        };
        STEPS.take();
        change(self);
        let (mut steps, mut lines, mut stored) = (Vec::new(), Vec::new(), Vec::new());
        for (what, address) in STEPS.take() {
            match what {
                // The heap's own, when it takes a page.
                StepKind::Store | StepKind::StoreUnpersisted if name(address) == NEW => {}
                StepKind::Store => {
                    stored.push(address);
                    steps.push(format!("store {}", name(address)));
                }
                // No thread waits for it to be durable: it only clears the mark of the earlier store.
                StepKind::StoreUnpersisted if stored.contains(&address) => {}
                StepKind::StoreUnpersisted => steps.push(format!("note {}", name(address))),
                StepKind::Fence(_) => {
                    lines.dedup();
                    steps.push(format!("persist {}", lines.join(", ")));
                    lines.clear();
                }
                _ => lines.push(name(address & !63)),
            }
        }
        assert_eq!(lines, [""; 0], "every written-back line is fenced");
        steps
    }
}

/// "(i) append the new entry, (ii) commit by the counter": an N4 has both in one line, and its key byte in
/// the counter's word; an N16 and an N48, whose child index commits, persist the pointer first; an N256
/// commits by the pointer. An N16's key byte, in the counter's line, is stored before the counter and durable
/// with it.
#[test]
fn an_entry_is_appended_and_then_committed() {
    let steps = [3, 10, 30, 60].map(|children| {
        let rig = Rig::with(&[7], children);
        rig.steps(|rig| rig.put(&[7, 200]))
    });
    let n4 = &["persist new", "store node+56", "store node+8", "persist node+0"][..];
    let n16 = &[
        "persist new",
        "store node+144",
        "persist node+128",
        "note node+40",
        "store node+8",
        "persist node+0",
    ];
    let n48 = &[
        "persist new",
        "store node+560",
        "persist node+512",
        "store node+264",
        "persist node+256",
    ];
    let n256 = &["persist new", "store node+1664", "persist node+1664"];
    assert_eq!(steps, [n4, n16, n48, n256]);
}

/// A removed entry is a null pointer, stored and persisted.
#[test]
fn a_removal_is_one_store() {
    let rig = Rig::with(&[7], 3);
    let steps = rig.steps(|rig| rig.remove(&[7, 1]));
    assert_eq!(steps, ["store node+40", "persist node+0"]);
}

/// The pointer under byte 7 of the root, an N256: its pointers begin after a line of header and count, in the order of
/// key bytes.
const SWING: [&str; 2] = ["store root+120", "persist root+64"];

/// The prefix in the node's header.
const PREFIX: [&str; 2] = ["store node+24", "persist node+0"];

/// "The node is copied to a new larger (or smaller) node and then the parent pointer is atomically swapped."
#[test]
fn a_copy_is_durable_before_the_pointer_to_it() {
    for children in [4, 16, 48] {
        let rig = Rig::with(&[7], children);
        let steps = rig.steps(|rig| rig.put(&[7, 200]));
        assert_eq!(
            steps,
            [&["persist new", "persist new"][..], &SWING].concat(),
            "{children}"
        );
    }
    let rig = Rig::with(&[7], 5);
    rig.remove(&[7, 0]);
    let steps = rig.steps(|rig| rig.remove(&[7, 1]));
    assert_eq!(steps, [&["persist new"][..], &SWING].concat());
}

/// Path compression is split in two ordered steps: the new node above is installed, then the node below gets
/// the prefix that fits.
#[test]
fn a_split_installs_the_node_and_then_cuts_the_prefix() {
    for (prefix, key) in [(&[7, 7][..], &[7, 9][..]), (&[7; 20], &[7, 7, 7, 9])] {
        for children in [2, 10, 30, 60] {
            let rig = Rig::with(prefix, children);
            let steps = rig.steps(|rig| rig.put(key));
            let new = ["persist new", "persist new"];
            assert_eq!(steps, [&new[..], &SWING, &PREFIX].concat(), "{children}");
        }
    }
}

/// Likewise a merge: the child is hung in the parent of the node being removed, then gets the prefix that fits.
#[test]
fn a_merge_swings_the_pointer_and_then_mends_the_prefix() {
    for children in [2, 10, 30, 60] {
        let rig = Rig::with(&[7, 7], children);
        let objects = rig.objects();
        rig.put(&[7, 9]);
        let steps = rig.steps_to(&objects, |rig| rig.remove(&[7, 9]));
        assert_eq!(steps, [SWING, PREFIX].concat(), "{children}");
    }
}

/// Two keys that part at a leaf: no existing object has a prefix to change.
#[test]
fn a_leaf_split_is_one_step() {
    let rig = Rig::with(&[7], 1);
    let steps = rig.steps_to(&rig.objects()[..1], |rig| rig.put(&[7, 1]));
    assert_eq!(steps, [&["persist new", "persist new"][..], &SWING].concat());
}

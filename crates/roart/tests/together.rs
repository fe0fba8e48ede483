//! Writes of several keys at once: their costs, and what other threads see meanwhile.

use heap::Heap;
use index::{Action, Edit, Edits, Error, Index, Upsert};
use pmem::watched::{self, Observer, StepKind};
use pmem::{Counting, Hardware, LINE, Media, Persists, Pool, PoolOptions, Purpose, Watched};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use wollemi_roart::{Full, Roart, Streaming, Variant, WithoutEc, WithoutInline, WithoutLc};

/// A value whose leaf fits one line, with a key of up to 24 bytes.
const OLD: &[u8] = b"a value of 24 bytes, old";
const NEW: &[u8] = b"a value of 24 bytes, new";

/// Upserts, as many as there are keys.
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
    upsert_each(index, keys, &vec![value; keys.len()]);
}

fn upsert_each(index: &dyn Index, keys: &[String], values: &[&'static [u8]]) {
    let all: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    let edits = values.iter().map(|&value| Upsert(value)).collect();
    index.write_many(&all, &mut Upserts(edits));
}

fn roart<M: Media, V: Variant>(media: M) -> Roart<M, V> {
    let pool = Pool::anonymous(&PoolOptions::default(), media).expect("a pool");
    let heap = Heap::new(pool).expect("a heap");
    Roart::create(&heap, b"together").expect("an index")
}

/// Sixteen keys: leaves in nodes, and, if there are leaf arrays, several in one.
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

/// Puts that replace leaves, or join a leaf array with room, share one fence for their leaves and one for the links
/// to them; each leaf is a line, and links in one line are written back together.
#[test]
fn puts_share_two_fences() {
    fn assert_shared<V: Variant>() {
        let keys = keys();
        let (node, _) = cost::<V>(&keys);
        assert_eq!(node.fences, 2);
        // Seven links in a line of the root, and nine in two lines of an array of 14 or a node of 16.
        assert_eq!(node.write_backs, keys.len() as u64 + 3);
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

/// Thirty-two pairs in four inline leaf arrays.
fn pairs() -> Vec<String> {
    let of = |first: u8| (0..8).map(move |i| format!("{}{}", char::from(first), i * 11));
    (b'a'..b'e').flat_map(of).collect()
}

/// Builds an index with the keys of [`pairs`], and returns the cost of upserting these keys and values in one call.
fn cost_of_pairs<V: Variant>(keys: &[String], values: &[&'static [u8]]) -> Persists {
    let media = Counting::new(Hardware::detect());
    let index = roart::<_, V>(media.clone());
    for key in pairs() {
        index.upsert(key.as_bytes(), b"8 bytes!").expect("there is room");
    }
    let before = media.counts();
    upsert_each(&index, keys, values);
    let counts = media.counts() - before;
    let guard = heap::pin();
    for (i, (key, value)) in keys.iter().zip(values).enumerate() {
        let held = index.get(key.as_bytes(), &guard).expect("no error");
        if !keys[i + 1..].contains(key) {
            assert_eq!(held.as_deref(), Some(*value), "{key}");
        }
    }
    assert!(index.check().expect("no error").found.is_empty());
    counts.node
}

/// Pairs in inline leaf arrays share one fence, with one write-back for each line, for new pairs as well as new
/// values; leaves among them share that fence, and another for the links.
#[test]
fn pairs_share_a_fence() {
    const OTHER: &[u8] = b"8 others";
    let keys = pairs();
    let updated = cost_of_pairs::<Full>(&keys, &[OTHER; 32]);
    assert_eq!(updated.fences, 1);
    // Arrays of 15 entries in four lines.
    assert!(updated.write_backs <= 16, "{updated:?}");
    let added: Vec<_> = ["a5", "b5", "c5", "d5", "a6", "d6"].map(str::to_owned).into();
    let inserted = cost_of_pairs::<Full>(&added, &[OTHER; 6]);
    assert_eq!(inserted.fences, 1);
    assert!((1..=6).contains(&inserted.write_backs), "{inserted:?}");
    let twice: Vec<_> = ["a5", "b0", "a5", "b0", "b0"].map(str::to_owned).into();
    let values: [&[u8]; 5] = [b"8 bytes1", b"8 bytes2", b"8 bytes3", b"8 bytes4", b"8 bytes5"];
    let again = cost_of_pairs::<Full>(&twice, &values);
    assert_eq!((again.write_backs, again.fences), (2, 1));
    let alone = cost_of_pairs::<Streaming>(&keys, &[OTHER; 32]);
    assert_eq!(alone.fences, 32, "without marks each has its own");

    let media = Counting::new(Hardware::detect());
    let index = roart::<_, Full>(media.clone());
    for key in &keys {
        index.upsert(key.as_bytes(), b"8 bytes!").expect("there is room");
    }
    let leaves = ["x alone", "y alone"].map(str::to_owned);
    upsert(&index, &leaves, OLD);
    let before = media.counts();
    let mixed = [&leaves[..1], &keys[..9], &leaves[1..], &keys[9..30]].concat();
    let values: Vec<_> = mixed
        .iter()
        .map(|key| if key.len() > 3 { NEW } else { OTHER })
        .collect();
    upsert_each(&index, &mixed, &values);
    assert_eq!((media.counts() - before).node.fences, 2);
}

/// A pair in a line behind one that the group has filled has a fence before it: a crash that kept it without the
/// pairs there would leave it where no search finds it. The group goes on after that fence.
#[test]
fn pairs_behind_a_line_that_was_filled_wait_for_it() {
    const WORD: &[u8] = b"8 others";
    let media = Counting::new(Hardware::detect());
    let index = roart::<_, Full>(media.clone());
    // Four lines: the first two are full, the third has one used entry, of a key from the first.
    for i in 0..8 {
        index
            .upsert(format!("a{i}").as_bytes(), WORD)
            .expect("there is room");
    }
    let cost = |keys: &[&str]| {
        let keys: Vec<_> = keys.iter().map(|&key| key.to_owned()).collect();
        let before = media.counts();
        upsert(&index, &keys, WORD);
        (media.counts() - before).node
    };
    // Three fill the third line, their home; the others go to the fourth.
    let beyond = cost(&["ax", "aw", "ay", "az", "av"]);
    assert_eq!((beyond.write_backs, beyond.fences), (2, 2));
    // Behind full lines with durable pairs no fence is needed before it, only the group's own.
    let behind = cost(&["au"]);
    assert_eq!((behind.write_backs, behind.fences), (1, 1));
    assert!(index.check().expect("no error").found.is_empty());
}

/// A pair whose slot of the root is empty, so that it becomes a leaf, or one that is no longer a pair, is written
/// alone, and the others together before and after it.
#[test]
fn what_is_no_pair_of_an_array_goes_alone() {
    let fences = |keys: &[&str], values: &[&'static [u8]]| {
        let keys: Vec<_> = keys.iter().map(|&key| key.to_owned()).collect();
        cost_of_pairs::<Full>(&keys, values).fences
    };
    let word: &[u8] = b"8 others";
    assert_eq!(fences(&["a0", "b0", "z", "c0", "d0"], &[word; 5]), 1 + 2 + 1);
    assert_eq!(
        fences(&["a0", "b0", "b11", "c0"], &[word, word, b"nine byte", word]),
        1 + 2 + 1
    );
}

/// A write of another kind (a duplicate key, a value of eight bytes in place, a key that makes a leaf array or
/// takes an empty slot of a node) is applied alone, and the others together before and after it.
#[test]
fn what_goes_alone_divides_the_others() {
    let fences = |keys: &[&str]| {
        let keys: Vec<_> = keys.iter().map(|&key| key.to_owned()).collect();
        cost::<Full>(&keys).0.fences
    };
    assert_eq!(fences(&["a alone", "b alone", "a alone", "c alone"]), 2 + 2 + 2);
    assert_eq!(fences(&["p beside x", "p beside x", "c alone"]), 2 + 2 + 2);
    assert_eq!(
        fences(&["a alone", "b alone", "c alone, not", "d alone"]),
        2 + 2 + 2
    );
    assert_eq!(fences(&["a alone", "z new", "d alone"]), 2 + 2 + 2);

    let media = Counting::new(Hardware::detect());
    let index = roart::<_, Full>(media.clone());
    upsert(&index, &keys(), b"8 bytes!");
    let before = media.counts();
    upsert(&index, &keys()[..3], b"8 more..");
    assert_eq!((media.counts() - before).node.fences, 3, "each in its place");
}

/// Values of 10 KiB go together by fours, which bounds how long other writers wait for a lock: 32 KiB end a group.
#[test]
fn large_values_end_a_group() {
    static LARGE: [u8; 10 << 10] = [7; 10 << 10];
    let media = Counting::new(Hardware::detect());
    let index = roart::<_, Full>(media.clone());
    upsert(&index, &keys(), OLD);
    let before = media.counts();
    upsert(&index, &keys()[..8], &LARGE);
    assert_eq!((media.counts() - before).node.fences, 2 + 2);
}

/// A larger value than 32 KiB is written alone, also behind pairs, whose locks other writers may wait for.
#[test]
fn a_large_value_joins_no_pairs() {
    static LARGE: [u8; 40 << 10] = [7; 40 << 10];
    let media = Counting::new(Hardware::detect());
    let index = roart::<_, Full>(media.clone());
    let keys = ["a0", "b0", "x alone"].map(str::to_owned);
    for key in pairs().iter().chain(&keys[2..]) {
        index.upsert(key.as_bytes(), b"8 bytes!").expect("there is room");
    }
    let before = media.counts();
    upsert_each(&index, &keys, &[b"8 others", b"8 others", &LARGE]);
    assert_eq!((media.counts() - before).node.fences, 1 + 2);
}

/// A break skips the remaining writes, and the completed ones are durable; a panic skips its own key too, and leaves
/// no lock taken.
#[test]
fn what_was_done_stays_done() {
    for panics in [false, true] {
        let media = Counting::new(Hardware::detect());
        let index = roart::<_, Full>(media.clone());
        upsert(&index, &keys(), OLD);
        let all = keys();
        let all: Vec<&[u8]> = all.iter().map(String::as_bytes).collect();
        let before = media.counts();
        let ended = std::panic::catch_unwind(AssertUnwindSafe(|| {
            index.write_many(&all, &mut Until { last: 4, panics });
        }));
        assert_eq!(ended.is_err(), panics);
        assert_eq!((media.counts() - before).node.fences, 2);
        let done = if panics { 4 } else { 5 };
        let guard = heap::pin();
        for (i, key) in all.iter().enumerate() {
            let held = index.get(key, &guard).expect("no error");
            assert_eq!(held.as_deref(), Some(if i < done { NEW } else { OLD }), "key {i}");
        }
        upsert(&index, &keys(), NEW);
    }
}

/// Upserts up to this key, which breaks off or panics.
struct Until {
    last: usize,
    panics: bool,
}

impl Edit for Until {
    fn decide(&mut self, _: Option<&[u8]>) -> Action {
        Action::Put
    }
    fn value(&self) -> &[u8] {
        NEW
    }
}

impl Edits for Until {
    fn edit(&mut self, i: usize) -> &mut dyn Edit {
        if self.panics && i == self.last {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        self
    }
    fn done(&mut self, i: usize, done: Result<Action, Error>) -> ControlFlow<()> {
        assert_eq!(done.expect("there is room"), Action::Put);
        match i == self.last {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Signals that it is deciding, and waits for the signal to continue.
struct Waits {
    decides: Sender<()>,
    go_on: Receiver<()>,
}

impl Edit for Waits {
    fn decide(&mut self, _: Option<&[u8]>) -> Action {
        self.decides.send(()).expect("the other thread waits");
        self.go_on.recv().expect("the other thread sends");
        Action::Put
    }
    fn value(&self) -> &[u8] {
        OLD
    }
}

/// A group that finds a lock held by another thread releases its own before it waits.
#[test]
fn who_waits_holds_no_lock() {
    let index = &roart::<_, Full>(Hardware::detect());
    upsert(index, &keys(), OLD);
    let (decides, has_decided) = channel();
    let (go_on, goes_on) = channel();
    std::thread::scope(|threads| {
        threads.spawn(move || {
            let mut edit = Waits {
                decides,
                go_on: goes_on,
            };
            index.write(b"a alone", &mut edit).expect("there is room");
        });
        has_decided.recv().expect("the writer sends");
        // The root's lock is taken.
        let group = threads.spawn(|| {
            let keys = ["p beside 0", "p beside 1", "a alone"].map(str::to_owned);
            upsert(index, &keys, NEW);
        });
        // Writes before the key are done while the group waits, and their keys can be written.
        let is_new = || {
            let guard = heap::pin();
            index.get(b"p beside 1", &guard).expect("no error").as_deref() == Some(NEW)
        };
        while !is_new() {
            assert!(!group.is_finished(), "the group waits for the key");
            std::thread::yield_now();
        }
        index.upsert(b"p beside 0", OLD).expect("there is room");
        go_on.send(()).expect("the writer waits");
    });
    let guard = heap::pin();
    let held = |key: &[u8]| {
        index
            .get(key, &guard)
            .expect("no error")
            .map(|value| value.to_vec())
    };
    assert_eq!(held(b"a alone").as_deref(), Some(NEW));
    assert_eq!(held(b"p beside 0").as_deref(), Some(OLD));
}

type Hook = Box<dyn FnMut(&'static str)>;

thread_local! {
    /// The hook of this thread.
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Calls the thread's hook after each fence for an index's own objects (`fence`), after each store of a link or a pair
/// (`store`), and after each store that need not be persisted: of a mark alone, set or cleared, or of a count (`mark`).
struct HookWatch;

impl Observer for HookWatch {
    fn after(&self, step: &watched::ObservedStep) {
        let name = match step.what {
            StepKind::Fence(Purpose::Node) => "fence",
            StepKind::Store => "store",
            StepKind::StoreUnpersisted => "mark",
            _ => return,
        };
        // The observing reader takes steps too; these are not observed.
        if let Some(mut hook) = HOOK.take() {
            hook(name);
            HOOK.set(Some(hook));
        }
    }
}

/// At every step of a group, a lookup finds each key with its old value or its new one, and with the new one for good.
/// The writing thread makes the lookups itself, between its steps, as another thread could. Returns each step's name,
/// and which keys had the new value.
fn looks_amid(keys: Vec<String>, old: &'static [u8], new: &'static [u8]) -> Vec<(&'static str, Vec<bool>)> {
    let index = Arc::new(roart::<_, Full>(Watched::machine(HookWatch)));
    for key in &keys {
        index.upsert(key.as_bytes(), old).expect("there is room");
    }
    let (sender, steps) = std::sync::mpsc::channel();
    let looking = Arc::clone(&index);
    let all = keys.clone();
    HOOK.set(Some(Box::new(move |step| {
        let guard = heap::pin();
        let is_new = |key: &String| {
            let held = looking.get(key.as_bytes(), &guard).expect("no error");
            let held = held.as_deref().expect("the key is present throughout");
            assert!(held == old || held == new, "{key}");
            held == new
        };
        let seen: Vec<bool> = all.iter().map(is_new).collect();
        sender.send((step, seen)).expect("the receiver lives");
    })));
    upsert(&*index, &keys, new);
    HOOK.set(None);
    let steps: Vec<_> = steps.iter().collect();
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
    steps
}

/// When the first link is stored, all leaves are already fenced.
#[test]
fn others_see_old_or_new() {
    let steps = looks_amid(keys(), OLD, NEW);
    let (_, first) = steps.iter().find(|(step, _)| *step == "fence").expect("a fence");
    assert!(!first.contains(&true), "a link before the leaves' fence");
    assert!(keys().iter().all(|key| key.len() + OLD.len() + 16 <= LINE));
}

/// Pairs are visible, and persisted by their readers, before their common fence; the marks by which readers know stay
/// until that fence.
#[test]
fn others_see_old_or_new_pairs() {
    let steps = looks_amid(pairs(), b"8 bytes!", b"8 others");
    assert_eq!(steps.iter().filter(|(step, _)| *step == "fence").count(), 1);
    let last_store = steps.iter().rposition(|(step, _)| *step == "store");
    let next = steps.get(last_store.expect("a store") + 1);
    assert_eq!(
        next.map(|(step, _)| *step),
        Some("fence"),
        "no mark is cleared between the last pair and the fence"
    );
    assert!(
        steps
            .iter()
            .any(|(_, new)| new.contains(&true) && new.contains(&false))
    );
}

/// A large value is written alone, after its group: no writer waits for the group's locks while it is copied.
#[test]
fn a_large_value_goes_by_itself() {
    static LARGE: [u8; 64 << 10] = [7; 64 << 10];
    let media = Counting::new(Hardware::detect());
    let index = roart::<_, Full>(media.clone());
    upsert(&index, &keys(), OLD);
    let keys = &keys()[..8];
    let before = media.counts();
    let mut values = vec![NEW; keys.len()];
    values[keys.len() - 1] = &LARGE;
    upsert_each(&index, keys, &values);
    assert_eq!((media.counts() - before).node.fences, 2 + 2);
}

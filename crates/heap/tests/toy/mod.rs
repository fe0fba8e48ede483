//! A small persistent map on the heap: a trie of sixteen-way nodes over hashed keys, with leaves of any length.
//!
//! Writers lock the subtree below one slot of the root; readers lock nothing. It keeps the rule for tracers: a
//! replaced node's slots stay as they were.
#![allow(dead_code, reason = "each test uses its part of it")]

use pmem::{
    Draft, Link, LinkAndPersist, Media, Offset, PSlot, PWord, Pool, Purpose, Tag, persist_scope, persistent,
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wollemi_heap::{Access, Error, Guard, Heap, Trace, Tracers, footprint, pin};

/// Upper bound on any wait for other threads, on a busy machine; beyond it the test counts as hung.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until all retired objects are freed: guards of other tests in this process may delay that.
#[track_caller]
pub fn settle<M: Media>(heap: &Heap<M>) {
    let begin = Instant::now();
    while heap.stats().retired > 0 {
        assert!(begin.elapsed() < PATIENCE, "{:?}", heap.stats());
        pin().flush();
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub const KIND: u32 = 77;
pub const NAME: &[u8] = b"toy";
const NODE: Tag = Tag::new(2);
const LEAF: Tag = Tag::new(0);
const MAX_TAIL: u64 = 1 << 20;

persistent! {
    pub struct Node [size: 128] {
        slots: [PSlot; 16],
    }

    /// A node as plain words, to damage it.
    struct Words [size: 128] {
        words: [PWord; 16],
    }

    pub struct Leaf [size: 16] {
        key: PWord,
        len: PWord,
    }
}

impl Node {
    fn empty() -> Node {
        Node {
            slots: [const { PSlot::null() }; 16],
        }
    }
}

pub struct Toy<M: Media> {
    pub heap: Heap<M>,
    root: Link,
    locks: [Mutex<()>; 16],
}

/// Small xorshift generator; the seed is in the test's message.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Lengths of tails: mostly short, some of several pages.
    pub fn len(&mut self) -> usize {
        (match self.below(100) {
            0..=79 => self.below(110),
            80..=97 => self.below(1500),
            98 => self.below(20_000),
            _ => 30_000 + self.below(150_000),
        }) as usize
    }
}

fn hash(key: u64) -> u64 {
    (key ^ 0x9e37_79b9_7f4a_7c15)
        .wrapping_mul(0xd6e8_feb8_6659_fd93)
        .rotate_left(32)
}

fn digit(key: u64, depth: u32) -> usize {
    (hash(key) >> (4 * depth)) as usize & 15
}

/// Fills the tail of a leaf.
fn fill(tail: &mut [u8], key: u64) {
    for (i, byte) in tail.iter_mut().enumerate() {
        *byte = (key as usize + i) as u8;
    }
}

pub fn tracers<M: Media>() -> Tracers<M> {
    vec![Arc::new(ToyTrace)]
}

pub struct ToyTrace;

// SAFETY: it reports all slots of a node, which are all that readers follow; leaves have none.
unsafe impl<M: Media> Trace<M> for ToyTrace {
    fn kind(&self) -> u32 {
        KIND
    }

    fn trace(&self, heap: &Access<M>, link: Link, children: &mut Vec<Link>) -> Result<u64, Error> {
        let offset = link.offset().expect("the heap follows no null links");
        if link.tag() == NODE {
            let node: &Node = heap.at(offset)?;
            children.extend(node.slots.iter().map(|slot| slot.load(heap.media())));
            return Ok(size_of::<Node>() as u64);
        }
        let leaf: &Leaf = heap.at(offset)?;
        let len = leaf.len.load(heap.media());
        if link.tag() != LEAF || len > MAX_TAIL {
            return Err(Error::Damaged {
                what: "toy leaf",
                offset: offset.get(),
            });
        }
        Ok(footprint::<Leaf>(len as usize).expect("small") as u64)
    }
}

impl<M: Media> Toy<M> {
    pub fn open(pool: Pool<M>) -> Result<Toy<M>, Error> {
        let heap = Heap::new(pool)?;
        let root = match heap.root(NAME)? {
            Some(root) => root.link,
            None => persist_scope(heap.media(), Purpose::Node, |batch| {
                let root = heap.draft(Node::empty(), 0, &batch)?.flush(&batch);
                let fenced = batch.fence();
                // SAFETY: an empty node is a toy's root.
                unsafe { heap.create_root(NAME, KIND, root.persisted(&fenced), NODE) }
            })?,
        };
        Ok(Toy {
            heap,
            root,
            locks: Default::default(),
        })
    }

    fn access(&self) -> &Access<M> {
        // SAFETY: readers hold a guard (their callers do), and writers lock what they read and unlink.
        unsafe { self.heap.access() }
    }

    fn node(&self, link: Link) -> &Node {
        self.access().at(link.offset().unwrap()).unwrap()
    }

    fn leaf(&self, link: Link) -> &Leaf {
        self.access().at(link.offset().unwrap()).unwrap()
    }

    fn key_of(&self, link: Link) -> u64 {
        self.leaf(link).key.load(self.heap.media())
    }

    /// The slot for the key, its depth, and the slot above it.
    fn find(&self, key: u64) -> (&PSlot, u32, Option<&PSlot>) {
        let mut above = None;
        let mut slot = &self.node(self.root).slots[digit(key, 0)];
        let mut depth = 1;
        loop {
            let link = slot.load(self.heap.media());
            if link.is_null() || link.tag() != NODE {
                return (slot, depth, above);
            }
            above = Some(slot);
            slot = &self.node(link).slots[digit(key, depth)];
            depth += 1;
        }
    }

    /// The length of the key's tail; checks that the leaf is intact.
    pub fn get(&self, key: u64, _guard: &Guard) -> Option<usize> {
        let link = self.find(key).0.load(self.heap.media());
        if link.is_null() || self.key_of(link) != key {
            return None;
        }
        Some(self.check_leaf(link))
    }

    fn check_leaf(&self, link: Link) -> usize {
        let leaf = self.leaf(link);
        let len = leaf.len.load(self.heap.media()) as usize;
        let bytes = self.access().bytes(link.offset().unwrap(), len + 16).unwrap();
        let mut expected = vec![0; len];
        fill(&mut expected, leaf.key.load(self.heap.media()));
        assert!(bytes[16..] == expected, "leaf {link:?} was overwritten");
        len
    }

    fn new_leaf<'e, 'h>(
        &'h self,
        key: u64,
        len: usize,
        batch: &pmem::PersistBatch<'e, '_, M>,
    ) -> Result<Draft<'e, 'h, Leaf>, Error> {
        let leaf = Leaf {
            key: PWord::new(key),
            len: PWord::new(len as u64),
        };
        let mut draft = self.heap.draft(leaf, len, batch)?;
        fill(draft.tail_mut(), key);
        Ok(draft)
    }

    /// Gives the key a tail of `len` bytes.
    pub fn put(&self, key: u64, len: usize) -> Result<(), Error> {
        let guard = pin();
        let _held = self.locks[digit(key, 0)].lock().unwrap();
        let media = self.heap.media();
        let (slot, depth, _) = self.find(key);
        let there = slot.load(media);
        persist_scope(media, Purpose::Node, |batch| {
            let leaf = self.new_leaf(key, len, &batch)?;
            if there.is_null() || self.key_of(there) == key {
                let leaf = leaf.flush(&batch);
                let fenced = batch.fence();
                let _ = slot
                    .publish::<LinkAndPersist, _, _>(media, leaf.persisted(&fenced), LEAF)
                    .commit();
                if !there.is_null() {
                    self.retire_leaf(there, &guard);
                }
                return Ok(());
            }
            // Adds nodes until the two keys part.
            let other = self.key_of(there);
            let mut parted = depth;
            while digit(key, parted) == digit(other, parted) {
                parted += 1;
            }
            let mut node = self.heap.draft(Node::empty(), 0, &batch)?;
            node.adopt(
                |node| &mut node.slots[digit(key, parted)],
                leaf.flush(&batch),
                LEAF,
            );
            node.link(|node| &mut node.slots[digit(other, parted)], there);
            for level in (depth..parted).rev() {
                let below = node.flush(&batch);
                node = self.heap.draft(Node::empty(), 0, &batch)?;
                node.adopt(|node| &mut node.slots[digit(key, level)], below, NODE);
            }
            let node = node.flush(&batch);
            let fenced = batch.fence();
            let _ = slot
                .publish::<LinkAndPersist, _, _>(media, node.persisted(&fenced), NODE)
                .commit();
            Ok(())
        })
    }

    /// Removes the key; returns `false` if it is absent.
    pub fn remove(&self, key: u64) -> bool {
        let guard = pin();
        let _held = self.locks[digit(key, 0)].lock().unwrap();
        let slot = self.find(key).0;
        let there = slot.load(self.heap.media());
        if there.is_null() || self.key_of(there) != key {
            return false;
        }
        let _ = slot
            .publish_link::<LinkAndPersist, _>(self.heap.media(), Link::NULL)
            .commit();
        self.retire_leaf(there, &guard);
        true
    }

    /// Replaces the node above the key's slot by a copy.
    pub fn copy_node(&self, key: u64) -> Result<(), Error> {
        let guard = pin();
        let _held = self.locks[digit(key, 0)].lock().unwrap();
        let media = self.heap.media();
        let Some(above) = self.find(key).2 else {
            return Ok(());
        };
        let old = above.load(media);
        persist_scope(media, Purpose::Node, |batch| {
            let mut copy = self.heap.draft(Node::empty(), 0, &batch)?;
            for (i, slot) in self.node(old).slots.iter().enumerate() {
                copy.link(|node| &mut node.slots[i], slot.load(media));
            }
            let copy = copy.flush(&batch);
            let fenced = batch.fence();
            let _ = above
                .publish::<LinkAndPersist, _, _>(media, copy.persisted(&fenced), NODE)
                .commit();
            // SAFETY: a slot led to the node until now, under the guard, and the one writer retires it.
            unsafe { self.heap.retire(&guard, old.offset().unwrap(), size_of::<Node>()) };
            Ok(())
        })
    }

    fn retire_leaf(&self, link: Link, guard: &Guard) {
        let len = self.leaf(link).len.load(self.heap.media()) as usize;
        let len = footprint::<Leaf>(len).unwrap();
        // SAFETY: the caller has unlinked it under the guard.
        unsafe { self.heap.retire(guard, link.offset().unwrap(), len) };
    }

    /// All keys with the lengths of their tails, each leaf checked.
    pub fn all(&self) -> std::collections::BTreeMap<u64, usize> {
        let mut all = std::collections::BTreeMap::new();
        let mut links = vec![self.root];
        while let Some(link) = links.pop() {
            if link.is_null() {
            } else if link.tag() == NODE {
                links.extend(
                    self.node(link)
                        .slots
                        .iter()
                        .map(|slot| slot.load(self.heap.media())),
                );
            } else {
                let before = all.insert(self.key_of(link), self.check_leaf(link));
                assert_eq!(before, None);
            }
        }
        all
    }

    /// A random write to a key of the model, which belongs to the calling thread alone.
    pub fn random_write(
        &self,
        random: &mut Random,
        keys: std::ops::Range<u64>,
        model: &mut std::collections::BTreeMap<u64, usize>,
    ) -> Result<(), Error> {
        let key = keys.start + random.below(keys.end - keys.start);
        match random.below(10) {
            0..=4 => {
                let len = random.len();
                self.put(key, len)?;
                model.insert(key, len);
            }
            5..=7 => {
                assert_eq!(self.remove(key), model.remove(&key).is_some(), "key {key}");
            }
            8 => self.copy_node(key)?,
            _ => {
                let guard = pin();
                assert_eq!(self.get(key, &guard), model.get(&key).copied(), "key {key}");
            }
        }
        Ok(())
    }

    /// Asserts that the accounts add up and that all and only what the root leads to is in use.
    pub fn assert_exact(&self, why: &str) {
        // Guards of other tests delay reclamation, and their threads free retired objects at any time.
        settle(&self.heap);
        let audit = self.heap.audit(&tracers(), 2).unwrap();
        assert!(audit.is_clean(), "{why}: {audit:?}");
        let stats = self.heap.stats();
        assert_eq!(
            stats.used + stats.free + stats.unswept,
            stats.reserved,
            "{why}: {stats:?}"
        );
        assert_eq!(stats.unswept, 0, "{why}: {stats:?}");
        assert_eq!(
            stats.objects,
            audit.reachable + audit.unreachable,
            "{why}: {stats:?} {audit:?}"
        );
    }
}

/// Chooses a seed for a random test, and prints it.
pub fn seed() -> u64 {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        now.as_nanos() as u64 | 1
    });
    eprintln!("SEED={seed}");
    seed
}

impl<M: Media> Toy<M> {
    /// The tail of a present key.
    pub fn bytes_of(&self, key: u64) -> &[u8] {
        let link = self.find(key).0.load(self.heap.media());
        let len = self.leaf(link).len.load(self.heap.media()) as usize;
        &self.access().bytes(link.offset().unwrap(), len + 16).unwrap()[16..]
    }

    /// The first half of a removal: unlinks the key's leaf.
    pub fn unlink(&self, key: u64) -> Link {
        let slot = self.find(key).0;
        let there = slot.load(self.heap.media());
        let _ = slot
            .publish_link::<LinkAndPersist, _>(self.heap.media(), Link::NULL)
            .commit();
        there
    }

    /// The second half.
    pub fn retire_unlinked(&self, link: Link, guard: &Guard) {
        self.check_leaf(link);
        self.retire_leaf(link, guard);
    }

    /// Damages the slot for a key: it leads to this place, as if a leaf were there.
    pub fn mislead_to_leaf(&self, key: u64, place: u64) {
        let (node, slot) = self.node_above(key);
        self.mislead(node, slot, place | LEAF.get());
    }

    /// Damages the slot for a key: it leads to the node that contains it.
    pub fn mislead_to_itself(&self, key: u64) {
        let (node, slot) = self.node_above(key);
        self.mislead(node, slot, node.get() | NODE.get());
    }

    fn mislead(&self, node: Offset, slot: usize, bits: u64) {
        let words: &Words = self.access().at(node).unwrap();
        words.words[slot].store_unpersisted(bits, self.heap.media());
    }

    /// The node that has the slot for a key, and the slot's number.
    fn node_above(&self, key: u64) -> (Offset, usize) {
        let (mut node, mut depth) = (self.root, 0);
        loop {
            let slot = digit(key, depth);
            let link = self.node(node).slots[slot].load(self.heap.media());
            if link.is_null() || link.tag() != NODE {
                return (node.offset().unwrap(), slot);
            }
            (node, depth) = (link, depth + 1);
        }
    }

    /// The link to the key's leaf.
    pub fn link_of(&self, key: u64) -> Link {
        self.find(key).0.load(self.heap.media())
    }

    /// Damages the key's leaf: it states an impossible length.
    pub fn damage(&self, key: u64) {
        let link = self.find(key).0.load(self.heap.media());
        persist_scope(self.heap.media(), Purpose::Node, |batch| {
            self.leaf(link).len.store(u64::MAX, &batch);
            let _ = batch.fence().durable();
        });
    }
}

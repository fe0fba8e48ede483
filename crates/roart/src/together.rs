//! Several writes in one group: their walks go side by side, and most of them become durable together (group commit).
//!
//! Most puts change one link, that of the key's leaf or a vacant entry of a leaf array, or one pair of an inline leaf
//! array. Each put of a group is decided under its lock, which stays held; its leaf is written, or its pair is stored
//! with a mark. Then
//!
//! 1. one fence makes all leaves and pairs durable; the pairs' marks are cleared, then the locks on their arrays are
//!    released;
//! 2. the links to the leaves are stored;
//! 3. one fence makes all links durable, and only then are the marks cleared, the locks released and the replaced
//!    leaves retired.
//!
//! If pairs of the group have filled a line, a pair whose search passes that line needs a fence first: a crash must not
//! keep it without the pairs in the line (`inline`, I2). The group goes on after that fence.
//!
//! Where fences cost nothing (level `process`), each write is applied alone, from where its walk has ended.
//!
//! To other threads each write looks like a single one. A write of any other kind, or one whose lock is taken or whose
//! place has changed, ends the group and is applied alone after it.
//!
//! I1 A thread that holds a group's locks waits for no lock.
//! I2 A group stores into a slot only once, and contains the key of a leaf only once. It may contain the key of a
//! pair several times.

use crate::array::ArrayRef;
use crate::fingerprint::{fingerprint, leaf_tag};
use crate::inline::word::KeyWord;
use crate::inline::{InlineEntry, InlineRef, Spot};
use crate::locate::Place;
use crate::subtree::pair_of;
use crate::writer::{Above, Writer, none_removed};
use crate::{Roart, Variant};
use art::{Kind, Leaf, LeafRef, Tagged, Walk, draft_leaf, same};
use heap::{Access, Error, Guard};
use index::{Action, EachEdit, Edit};
use pmem::{
    Fault, Flushed, GenerationLock, Link, Locked, Media, PSlot, PersistBatch, Publication, Purpose, Tag,
    persist_scope,
};
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// Bytes of values that end a group; a larger value is written alone. Bounds how long other writers wait for the
/// locks.
const BYTES: usize = 32 << 10;

impl<M: Media, V: Variant> Roart<M, V> {
    /// Applies edits to at most [`GROUP`](art::GROUP) keys in order, until `each` breaks. All applied edits are durable
    /// when this returns: with 2 fences for those that go together, 1 if all of them are pairs, one more wherever a
    /// pair waits for a line that pairs before it have filled, and as many write-backs as each has alone, or fewer if
    /// links or pairs share a line.
    pub(crate) fn edit_group(
        &self,
        keys: &[&[u8]],
        guard: &Guard,
        each: &mut EachEdit<'_>,
    ) -> ControlFlow<()> {
        // The edit itself reports any fault.
        let walks = self.walk_group::<false>(keys);
        // A walk that has skipped bytes is of use only if its key is probably there: a writer that does not find the
        // key has to restart.
        let above = |i: usize| {
            let likely = |walk: &&Walk| walk.is_whole || has_home(walk.link);
            let walk = walks.as_ref().ok().map(|walks| &walks[i]);
            walk.filter(likely).map(|walk| Above {
                link: walk.above.0,
                depth: walk.above.1,
                is_whole: walk.is_whole,
            })
        };
        if !self.heap.media().fences() {
            // There is no fence to share.
            return keys
                .iter()
                .enumerate()
                .try_for_each(|(i, key)| each(i, &mut |edit| self.writer(key, guard, above(i)).edit(edit)));
        }
        let mut next = 0;
        let mut flow = ControlFlow::Continue(());
        while next < keys.len() && flow.is_continue() {
            persist_scope(self.heap.media(), Purpose::Node, |batch| {
                batch.hold_back();
                let mut group = GroupCommit::<_, V::Publish> {
                    heap: &self.heap,
                    guard,
                    batch: Some(batch),
                    puts: Vec::new(),
                    pairs: Vec::new(),
                    settled: 0,
                    max: keys.len() - next,
                    bytes: 0,
                    publish: PhantomData,
                };
                while next < keys.len() && flow.is_continue() && group.is_open() {
                    let (i, key) = (next, keys[next]);
                    next += 1;
                    flow = each(i, &mut |edit| {
                        let writer = self.writer(key, guard, above(i));
                        // A fault will be reported by the edit.
                        let place = writer.locate().ok().flatten();
                        let Some(to_join) = place.filter(|place| has_place(place.link)) else {
                            group.commit();
                            return match place.map(|place| writer.edit_at(&place, edit)).transpose()? {
                                Some(Some(action)) => Ok(action),
                                _ => writer.edit(edit),
                            };
                        };
                        if let Ok(Some(action)) = writer.join(&to_join, edit, &mut group) {
                            return Ok(action);
                        }
                        group.commit();
                        // From the root: `join` may have used up the note of skipped bytes (`Writer::passed`).
                        writer.edit(edit)
                    });
                }
            });
        }
        flow
    }
}

/// Whether a link leads to a place where a put may join a group.
fn has_place(link: Link) -> bool {
    has_home(link) || link.kind() == Kind::Inline
}

/// Whether a link leads to a place where a put may hang its leaf.
fn has_home(link: Link) -> bool {
    matches!(link.kind(), Kind::Leaf | Kind::Array)
}

/// Puts that become durable together, at the latest when this is dropped: even if an edit panics, since the edits
/// before it were reported as done.
struct GroupCommit<'e, 'g, M: Media, P: Publication> {
    heap: &'g Access<M>,
    guard: &'g Guard,
    /// The batch of the leaves; `None` once the group is committed.
    batch: Option<PersistBatch<'e, 'g, M>>,
    puts: Vec<Put<'e, 'g, M>>,
    pairs: Vec<Pair<'g, M>>,
    /// Number of pairs that are durable and have no mark.
    settled: usize,
    /// Maximum number of writes that can join.
    max: usize,
    /// Bytes of the values in `puts`.
    bytes: usize,
    publish: PhantomData<P>,
}

/// A pair in an inline leaf array, stored and marked.
struct Pair<'g, M: Media> {
    entry: &'g InlineEntry,
    /// The array's lock, unless an earlier pair has it.
    locked: Option<Locked<'g, M>>,
}

/// A leaf, and its future place.
struct Put<'e, 'g, M: Media> {
    leaf: Flushed<'e, 'g, Leaf>,
    slot: &'g PSlot,
    tag: Tag,
    /// The leaf there now, and its length.
    replaced: Option<(Link, usize)>,
    /// The lock on the slot, unless an earlier put has it.
    locked: Option<Locked<'g, M>>,
}

impl<'e, 'g, M: Media, P: Publication> GroupCommit<'e, 'g, M, P> {
    /// Whether more may join.
    fn is_open(&self) -> bool {
        self.batch.is_some() && self.bytes < BYTES
    }

    /// Whether a value of this many bytes may join.
    fn has_room(&self, len: usize) -> bool {
        (self.puts.is_empty() && self.pairs.is_empty()) || len <= BYTES
    }

    /// Takes a lock, through `try_lock`, which fails if the group has it: then returns `Some(None)`. Returns `None` if
    /// another thread has it, or the object is obsolete.
    fn lock(
        &self,
        lock: &GenerationLock,
        try_lock: impl FnOnce() -> Result<Option<Locked<'g, M>>, Fault>,
    ) -> Result<Option<Option<Locked<'g, M>>>, Fault> {
        Ok(match try_lock()? {
            Some(locked) => Some(Some(locked)),
            None => self.holds(lock).then_some(None),
        })
    }

    /// Whether the group holds this lock.
    fn holds(&self, lock: &GenerationLock) -> bool {
        let puts = self.puts.iter().map(|put| &put.locked);
        let mut all = puts.chain(self.pairs.iter().map(|pair| &pair.locked)).flatten();
        all.any(|locked| locked.is_of(lock))
    }

    /// Whether the group will store into the slot.
    fn has(&self, slot: &PSlot) -> bool {
        self.puts.iter().any(|put| std::ptr::eq(put.slot, slot))
    }

    /// Whether the group adds a new leaf with this tag.
    fn adds(&self, tag: Tag) -> bool {
        self.puts
            .iter()
            .any(|put| put.replaced.is_none() && put.tag == tag)
    }

    /// Makes the pairs that have joined so far durable, and keeps their locks.
    fn settle_pairs(&mut self) {
        if let Some(batch) = &self.batch {
            batch.fence_early();
            self.take_marks();
        }
    }

    /// Clears the marks of pairs that have become durable.
    fn take_marks(&mut self) {
        let media = self.heap.media();
        for pair in &self.pairs[self.settled..] {
            pair.entry.settle(media);
        }
        self.settled = self.pairs.len();
    }

    /// Makes everything that has joined durable, and releases it. Nothing joins afterwards.
    fn commit(&mut self) {
        let is_empty = self.puts.is_empty() && self.pairs.is_empty();
        let Some(batch) = self.batch.take().filter(|_| !is_empty) else {
            return;
        };
        let (media, leaves) = (self.heap.media(), batch.fence());
        if self.pairs.len() > 1 {
            media.comes_to("several pairs together");
        }
        self.take_marks();
        // Releases their locks.
        self.pairs.clear();
        if self.puts.is_empty() {
            return;
        }
        if self.puts.len() > 1 {
            media.comes_to("several puts together");
        }
        persist_scope(media, Purpose::Node, |links| {
            let mut stored = Vec::with_capacity(self.puts.len());
            for put in self.puts.drain(..) {
                let leaf = put.leaf.persisted(&leaves);
                let link = put.slot.publish::<P, M, _>(media, leaf, put.tag).join(&links);
                stored.push((Some(link), put.locked, put.replaced));
            }
            let links = links.fence();
            for (link, ..) in &mut stored {
                let _durable = link.take().map(|link| link.durable(&links));
            }
            // All marks are cleared before the first lock is released: several puts may share it.
            for (_, locked, _) in &mut stored {
                drop(locked.take());
            }
            for (link, len) in stored.into_iter().filter_map(|(.., replaced)| replaced) {
                art::retire(self.heap, self.guard, link, len);
            }
        });
    }
}

impl<M: Media, P: Publication> Drop for GroupCommit<'_, '_, M, P> {
    fn drop(&mut self) {
        self.commit();
    }
}

/// A place where a put may hang its leaf.
struct Home<'g, M: Media> {
    slot: &'g PSlot,
    tag: Tag,
    /// The key's leaf, and the link to it.
    old: Option<(Link, LeafRef<'g>)>,
    /// The lock on the slot; `None` if the group holds it already. If it is new, the group stores into no slot under it
    /// yet.
    locked: Option<Locked<'g, M>>,
}

impl<'g, M: Media, V: Variant> Writer<'g, M, V> {
    /// Asks the edit for its decision. Returns it if the edit keeps the key unchanged, or if it puts a leaf for which
    /// there is a slot: then the put has joined the group. Otherwise returns `None` and has changed nothing, and the
    /// edit must be asked again.
    fn join<'e>(
        &self,
        place: &Place<'g>,
        edit: &mut dyn Edit,
        group: &mut GroupCommit<'e, 'g, M, V::Publish>,
    ) -> Result<Option<Action>, Error> {
        let home = match place.link.kind() {
            Kind::Inline => return self.join_inline(place, edit, group),
            Kind::Array => self.home_in_array(place, group)?,
            _ => self.home_in_node(place, group)?,
        };
        let Some(Home {
            slot,
            tag,
            old,
            locked,
        }) = home.filter(|home| home.locked.is_some() || !group.has(home.slot))
        else {
            return Ok(None);
        };
        let current = old.map(|(_, leaf)| leaf.value(self.heap));
        let mut action = edit.decide(current.as_deref());
        if old.is_none() {
            action = none_removed(action);
        }
        let (Action::Put, Some(batch)) = (action, &group.batch) else {
            return Ok((action == Action::Keep).then_some(action));
        };
        let value = edit.value();
        let in_place = old.is_some_and(|(_, leaf)| leaf.takes_word(value).is_some());
        if in_place || !group.has_room(value.len()) {
            return Ok(None);
        }
        let leaf = draft_leaf(self.heap, self.key, value, batch)?.flush(batch);
        group.bytes += value.len();
        group.puts.reserve_exact(group.max - group.puts.len());
        group.puts.push(Put {
            leaf,
            slot,
            tag,
            replaced: old.map(|(link, leaf)| (link, leaf.extent())),
            locked,
        });
        Ok(Some(action))
    }

    /// Like [`join`](Writer::join), if the key's slot holds an inline leaf array: stores a pair into the array.
    fn join_inline<'e>(
        &self,
        place: &Place<'g>,
        edit: &mut dyn Edit,
        group: &mut GroupCommit<'e, 'g, M, V::Publish>,
    ) -> Result<Option<Action>, Error> {
        let (heap, media) = (self.heap, self.heap.media());
        let Some(word) = KeyWord::of(self.key).filter(|_| V::INLINE && V::Publish::MARKS) else {
            return Ok(None);
        };
        let array = InlineRef::at(heap, place.link)?;
        let path = self.compared(place.level + 1);
        let locked = match array.try_lock(heap, place.link, path)? {
            Some(locked) => Some(locked),
            None if group.holds(array.lock_word(heap)?) => None,
            None => return Ok(None),
        };
        if !self.is_in_place(place) {
            return Ok(None);
        }
        let mut is_behind_mark = false;
        let (entry, is_present) = match array.spot(word, media) {
            Spot::Taken(entry) => (entry, entry.stored(media) == Some((word, true))),
            Spot::Free(free) if array.takes(word, place.level + 1, media) => {
                is_behind_mark = free.is_behind_mark;
                (free.entry, false)
            }
            _ => return Ok(None),
        };
        if !is_present && !self.has_passed_rightly(place)? {
            return Ok(None);
        }
        let current = is_present.then(|| entry.value(media).to_le_bytes());
        let mut action = edit.decide(current.as_ref().map(|value| &value[..]));
        if !is_present {
            action = none_removed(action);
        }
        if action != Action::Put {
            return Ok((action == Action::Keep).then_some(action));
        }
        let Some((_, value)) = pair_of(self.key, edit.value()) else {
            return Ok(None);
        };
        if is_behind_mark {
            group.settle_pairs();
        }
        let Some(batch) = &group.batch else {
            return Ok(None);
        };
        if is_present {
            entry.update_marked(word, value, batch);
        } else {
            entry.insert_marked(word, value, batch);
            array.add_present(1, heap);
        }
        group.pairs.reserve_exact(group.max - group.pairs.len());
        group.pairs.push(Pair { entry, locked });
        Ok(Some(action))
    }

    /// The key's entry in a leaf array, or a vacant one.
    fn home_in_array<'e>(
        &self,
        place: &Place<'g>,
        group: &GroupCommit<'e, 'g, M, V::Publish>,
    ) -> Result<Option<Home<'g, M>>, Fault> {
        let (heap, media) = (self.heap, self.heap.media());
        let array = ArrayRef::at(heap, place.link)?;
        let path = self.compared(place.level + 1);
        let try_lock = || array.try_lock(heap, place.link, path);
        let Some(locked) = group.lock(array.lock_word(), try_lock)? else {
            return Ok(None);
        };
        let print = fingerprint(self.key);
        let Some(found) = self.find_in_array(place, &array, print)? else {
            return Ok(None);
        };
        if let Some((slot, link, leaf)) = found {
            return Ok(Some(Home {
                slot,
                tag: link.tag(),
                old: Some((link, leaf)),
                locked,
            }));
        }
        let tag = leaf_tag(print);
        // A leaf with this tag that the group adds may have this key.
        let is_shared = locked.is_none();
        if is_shared && group.adds(tag) {
            return Ok(None);
        }
        let mut vacant = array.slots().iter().filter(|slot| slot.load(media).is_null());
        let vacant = vacant.find(|slot| !is_shared || !group.has(slot));
        Ok(vacant.map(|slot| Home {
            slot,
            tag,
            old: None,
            locked,
        }))
    }

    /// The key's slot in a node, which leads to its leaf.
    fn home_in_node<'e>(
        &self,
        place: &Place<'g>,
        group: &GroupCommit<'e, 'g, M, V::Publish>,
    ) -> Result<Option<Home<'g, M>>, Fault> {
        let node = place.node;
        let Some(locked) = group.lock(&node.header().lock, || node.try_lock(self.heap))? else {
            return Ok(None);
        };
        let (Some(slot), link) = node.slot::<V, M>(self.heap, place.level, self.key)? else {
            return Ok(None);
        };
        if link.kind() != Kind::Leaf {
            return Ok(None);
        }
        let leaf = LeafRef::at(self.heap, link)?;
        let home = Home {
            slot,
            tag: link.tag(),
            old: Some((link, leaf)),
            locked,
        };
        Ok(same(leaf.key(), self.key).then_some(home))
    }
}

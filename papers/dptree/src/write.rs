//! Writes (DPTree §3.1, §3.4, Algorithm 7).
//!
//! A write locks the leaf of the front tree in which its key belongs, finds the key's value, asks the edit, appends
//! the log record, durably, and then puts the entry into the leaf. So a key's log records are in the order of its
//! updates, and readers find only durable entries.
//!
//! If there is no middle tree, a pair that is only in the base tree, in place, is updated there to another value of
//! eight bytes, or removed there, by one word, without a log record. The greatest key of a leaf is removed through the
//! log, since its slot marks the end of the leaf's range.

use crate::base::Found;
use crate::key::{MarkedPair, SearchKey, in_place};
use crate::root::tag;
use crate::tree::{TreeState, Trees};
use heap::{Error, Guard};
use index::codec::{self, PairWords};
use index::{Action, Edit};
use pmem::{Link, Media, Purpose, persist_scope};
use std::sync::atomic::Ordering::Relaxed;

impl<M: Media> TreeState<M> {
    /// Applies the edit.
    pub(crate) fn edit(
        &self,
        key: &SearchKey<'_>,
        edit: &mut dyn Edit,
        guard: &Guard,
    ) -> Result<Action, Error> {
        let heap = &self.heap;
        let hash = key.hash();
        let _inside = self.gate.enter(heap.media());
        let trees = self.current.load(guard);
        // The base tree's lines for the key arrive while the buffer trees are searched.
        let place = trees.base.approach(heap, self.shape.leaf, key, hash);
        let leaf = trees.front.tree.lock(heap, key)?;
        let buffered = match (leaf.entry(), &trees.middle) {
            (None, Some(middle)) => middle.get(heap, key, hash)?,
            (entry, _) => entry,
        };
        let found = match buffered {
            None => trees.base.get(heap, place, key, hash, self.options.probing)?,
            Some(_) => None,
        };
        let present = buffered
            .filter(|entry| !entry.removed)
            .or(found.as_ref().map(|found| found.entry));
        let value = present.map(|entry| entry.value(heap)).transpose()?;
        let action = match edit.decide(value.as_deref()) {
            Action::Remove if value.is_none() => Action::Keep,
            action => action,
        };
        let new = match action {
            Action::Keep => return Ok(action),
            Action::Put => Some(edit.value()),
            Action::Remove => None,
        };
        if let (Some(found), None) = (found, &trees.middle)
            && self.write_in_place(trees, &found, new)?
        {
            return Ok(action);
        }
        let entry = match new {
            Some(value) => self.pair(key, value)?,
            None => removal(key, present.as_ref()),
        };
        match trees
            .front
            .log
            .append(heap, self.root()?, &self.cache, hash, &entry)
        {
            Ok(position) => {
                trees.front.put(leaf, hash, entry);
                if trees.front.count(position) {
                    self.is_full.store(true, Relaxed);
                }
                Ok(action)
            }
            Err(error) => {
                if !entry.removed {
                    // SAFETY: the entry is not in the log, so nothing leads to its record.
                    unsafe { codec::retire(heap, guard, entry.link) }?;
                }
                Err(error)
            }
        }
    }

    /// Changes a pair of the base tree by one word (`None` removes it); returns `false` if that is not possible. Costs
    /// one write-back and one fence.
    fn write_in_place(&self, trees: &Trees, found: &Found<'_>, new: Option<&[u8]>) -> Result<bool, Error> {
        let Found { leaf, slot, entry } = found;
        let version = trees.base.state.version;
        if !entry.link.is_null() {
            return Ok(false);
        }
        match new.map(<[u8; 8]>::try_from) {
            Some(Ok(value)) => {
                self.heap.media().comes_to("in place: value");
                let _locked = leaf.lock(&self.heap, version)?;
                leaf.update(&self.heap, *slot, u64::from_le_bytes(value));
                Ok(true)
            }
            None if leaf.last(version, self.heap.media())? != *slot => {
                self.heap.media().comes_to("in place: removal");
                let _locked = leaf.lock(&self.heap, version)?;
                leaf.remove(&self.heap, version, *slot);
                if trees.front.count_removal() {
                    self.is_full.store(true, Relaxed);
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The entry of a key and its new value. If they are not stored in place, their record is durable.
    fn pair(&self, key: &SearchKey<'_>, value: &[u8]) -> Result<MarkedPair, Error> {
        let word = in_place(key.bytes, value);
        let link = match word {
            Some(_) => Link::NULL,
            None => persist_scope(self.heap.media(), Purpose::Node, |batch| {
                let flushed = codec::draft(&self.heap, key.bytes, value, &batch)?;
                Ok::<_, Error>(flushed.persisted(&batch.fence()).into_link(tag::RECORD))
            })?,
        };
        Ok(MarkedPair {
            pair: PairWords {
                prefix: key.prefix,
                link,
                word: word.unwrap_or_default(),
            },
            removed: false,
        })
    }
}

/// The removal of a present key. The key is not copied: the record of the removed pair contains it, and lives until
/// this entry is merged. Until then the log of the present pair leads to that record, or, once that log is merged, a
/// leaf does.
fn removal(key: &SearchKey<'_>, present: Option<&MarkedPair>) -> MarkedPair {
    let link = match (key.bytes.len(), present) {
        (8, _) | (_, None) => Link::NULL,
        (_, Some(present)) => present.link,
    };
    MarkedPair {
        pair: PairWords {
            prefix: key.prefix,
            link,
            word: 0,
        },
        removed: true,
    }
}

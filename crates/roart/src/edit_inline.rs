//! Writes into inline leaf arrays.

use crate::Variant;
use crate::array::MAX_LEAVES;
use crate::inline::word::KeyWord;
use crate::inline::{Fill, Image, InlineEntry, InlineRef, Spot};
use crate::locate::Place;
use crate::subtree::{Built, Member, pair_of, shared_by, short_value};
use crate::writer::{Writer, none_removed};
use art::{damaged, no_memory};
use heap::Error;
use index::{Action, Edit, Value};
use pmem::{Locked, Media, Purpose, persist_scope};

/// Maximum number of keys, the written one included, that move from an inline leaf array into one leaf array when the
/// written key or its value is not short.
const CONVERT: usize = MAX_LEAVES / 2;

/// The array to write to, locked, and the first byte of all its keys.
struct Target<'p, 'g, M: Media> {
    place: &'p Place<'g>,
    array: InlineRef<'g>,
    locked: Locked<'g, M>,
    first: u8,
}

impl<M: Media, V: Variant> Writer<'_, M, V> {
    /// Edits a key whose slot holds an inline leaf array.
    pub(crate) fn edit_inline(
        &self,
        place: &Place<'_>,
        edit: &mut dyn Edit,
    ) -> Result<Option<Action>, Error> {
        let media = self.heap.media();
        let Some(&first) = self.key.first().filter(|_| V::INLINE) else {
            return Err(damaged("link's kind", place.link).into());
        };
        let array = InlineRef::at(self.heap, place.link)?;
        let word = KeyWord::of(self.key);
        let window = word.map(|word| array.shape.window(word));
        if let Some(window) = &window {
            array.prefetch_line(window.start);
        }
        let path = self.compared(place.level + 1);
        let Ok(locked) = array.lock(self.heap, place.link, path)? else {
            return Ok(None);
        };
        if !self.is_in_place(place) {
            return Ok(None);
        }
        let spot = word
            .zip(window)
            .map(|(word, window)| (word, array.spot_in(window, word, media)));
        let target = Target {
            place,
            array,
            locked,
            first,
        };
        if let Some((word, Spot::Taken(entry))) = spot
            && entry.stored(media) == Some((word, true))
        {
            let value = Value::Word(entry.value(media).to_le_bytes());
            let action = edit.decide(Some(&value));
            match action {
                Action::Keep => {}
                Action::Remove => self.remove_inline(target, entry, word)?,
                Action::Put => match short_value(edit.value()) {
                    Some(value) => entry.update::<V::Publish, M>(word, value, media),
                    None => self.rebuild_inline(target, Some(word), edit.value())?,
                },
            }
            return Ok(Some(action));
        }
        if !self.has_passed_rightly(place)? {
            return Ok(None);
        }
        let action = edit.decide(None);
        if action != Action::Put {
            return Ok(Some(none_removed(action)));
        }
        let (word, entry) = match spot {
            Some((word, Spot::Taken(entry))) => (word, entry),
            Some((word, Spot::Free(free))) if array.takes(word, place.level + 1, media) => (word, free.entry),
            _ => {
                self.rebuild_inline(target, None, edit.value())?;
                return Ok(Some(action));
            }
        };
        match short_value(edit.value()) {
            Some(value) => {
                entry.insert::<V::Publish, M>(word, value, media);
                array.add_present(1, self.heap);
            }
            None => self.rebuild_inline(target, None, edit.value())?,
        }
        Ok(Some(action))
    }

    /// Replaces the array by objects that also hold the written pair; `replaced` is its key if the array has it. A
    /// short pair gets another inline leaf array if that is full enough ([`Fill::Tight`]): one of the same class or
    /// above, or of any class if the key lacks bytes that all others share. Otherwise, if the key parts from all others
    /// before the byte at which these differ, a node is put above the array, which stays; else the keys go into a
    /// single leaf, a leaf array, or smaller arrays below a node. Costs 2 fences.
    fn rebuild_inline(
        &self,
        target: Target<'_, '_, M>,
        replaced: Option<KeyWord>,
        value: &[u8],
    ) -> Result<(), Error> {
        let media = self.heap.media();
        let Target {
            place,
            array,
            locked,
            first,
        } = target;
        let shape = array.shape;
        let mut pairs = Vec::with_capacity(shape.capacity() + 1);
        let mut used = 0;
        for entry in array.entries() {
            if let Some((word, present)) = entry.stored(media) {
                used += 1;
                if present && Some(word) != replaced {
                    pairs.push((word, entry.value(media)));
                }
            }
        }
        let others = pairs.len();
        // The first byte is that of all keys.
        let path = self.key.get(..=place.level).and_then(KeyWord::of);
        let belongs = |word: KeyWord| path.is_some_and(|path| word.begins_with(path));
        if !pairs.iter().all(|&(word, _)| belongs(word)) {
            return Err(damaged("inline leaf array's entries", place.link).into());
        }
        let mut members: Vec<Member<'_>> = Vec::new();
        let short = pair_of(self.key, value);
        if let Some(new) = short {
            pairs.push(new);
            let least = if !array.takes(new.0, place.level + 1, media) {
                0
            } else if (used - others) * 8 < shape.capacity() {
                // Few entries are of removed keys: in an array of the same class the next key would find no room
                // either.
                shape.class + 1
            } else {
                shape.class
            };
            if let Some(image) = Image::of(&pairs, least, Fill::Tight) {
                self.publish_image(place, &image)?;
                locked.retire();
                self.retire(place.link, shape.size());
                return Ok(());
            }
            pairs.pop();
        }
        pairs.sort_unstable();
        members.extend(
            pairs
                .into_iter()
                .map(|(word, value)| Member::Pair(first, word, value)),
        );
        members.push(Member::New(self.key, value));
        let level = shared_by(&members, 0);
        let stays = replaced.is_none() && others > 0 && level < usize::from(shape.from);
        let parent = self.lock_parent(place.link)?;
        let depth = parent.level + 1;
        let mut built = Built::default();
        let subtrees = self.subtrees();
        let done = persist_scope(media, Purpose::Node, |batch| {
            let top = if stays {
                subtrees.draft_beside(
                    &batch,
                    depth,
                    &self.key[..level],
                    place.link,
                    &members,
                    &mut built,
                )?
            } else if members.len() == 1 {
                subtrees.draft_subtree(&batch, depth, None, &members, &mut built)?
            } else if short.is_none() && members.len() <= CONVERT {
                subtrees.draft_leaves(&batch, &members, &mut built)?
            } else {
                subtrees.draft_over(&batch, depth, level, &members, &mut built)?
            };
            self.publish_top(&parent, top, batch);
            Ok(())
        });
        drop(parent);
        built.settle(self.heap, self.guard, done.is_ok());
        if done.is_ok() && !stays {
            locked.retire();
            self.retire(place.link, shape.size());
        }
        done
    }

    /// Swings the slot of the place's array, which is locked, to a new one.
    fn publish_image(&self, place: &Place<'_>, image: &Image) -> Result<(), Error> {
        let parent = self.lock_parent(place.link)?;
        persist_scope(self.heap.media(), Purpose::Node, |batch| {
            let top = self
                .subtrees()
                .draft_image(&batch, image, &[], &mut Built::default())?;
            self.publish_top(&parent, top, batch);
            Ok(())
        })
    }

    /// Removes a present key. Costs 1 write-back and 1 fence; if few keys are left, a smaller array replaces this one,
    /// for a write-back of each of its lines and of the slot's, and 2 fences.
    fn remove_inline(
        &self,
        target: Target<'_, '_, M>,
        entry: &InlineEntry,
        word: KeyWord,
    ) -> Result<(), Error> {
        let media = self.heap.media();
        let Target {
            place, array, locked, ..
        } = target;
        let shape = array.shape;
        let left = array.present(self.heap)?.saturating_sub(1);
        if left == 0 {
            let parent = self.lock_parent(place.link)?;
            let above = Place {
                node: parent.node,
                at: parent.at,
                level: parent.level,
                slot: Some(parent.slot),
                link: parent.link,
                parting: None,
            };
            self.remove_child(&above, parent.locked, parent.slot, (parent.link, shape.size()))?;
            locked.retire();
            return Ok(());
        }
        // A smaller array is tried only at powers of two: keys may lie too close together for one, and then each
        // removal would try in vain.
        if left * 8 <= shape.capacity() && left.is_power_of_two() {
            let others = array.pairs(media).filter(|(other, _)| *other != word);
            let pairs: Vec<_> = others.collect();
            let image = Image::of(&pairs, 0, Fill::Loose).filter(|image| image.shape.class < shape.class);
            if let Some(image) = image
                && !no_memory(self.publish_image(place, &image))?
            {
                locked.retire();
                self.retire(place.link, shape.size());
                return Ok(());
            }
        }
        entry.remove::<V::Publish, M>(word, media);
        array.add_present(-1, self.heap);
        drop(locked);
        Ok(())
    }
}

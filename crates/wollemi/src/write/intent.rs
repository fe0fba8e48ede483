//! The database's own root, and the intents: the pending changes of committed batches and transactions.
//!
//! ```text
//! root ""  -->  Own    128  intents: 16 slots, each a link to an Intent, or null
//!               Intent   8  bytes of what follows the count
//!                        8  count of changes
//!                        …  the changes, one after the other, not aligned:
//!                           1  1: upsert, 2: remove
//!                           1  length of the map's name
//!                           2  length of the key
//!                           4  length of the value; 0 for a remove
//!                           …  name, key, value
//! ```
//!
//! Little endian. The first commit of several changes creates the root. Before transactions existed, the root was of
//! another kind and had one slot:
//!
//! ```text
//! root ""  -->  SingleSlot  8  intent: link to an Intent, or null
//! ```
//!
//! I1 An intent is constant from its publication, and durable before it.
//! I2 While the root links to an intent, only the intent's commit writes the keys that it names. So intents that exist
//! at the same time name different keys.

use heap::{Access, Trace, footprint};
use pmem::{Link, Media, Offset, PSlot, PWord, Tag, persistent};
use std::sync::Arc;

/// The kind of the root, distinct from every index's.
pub(crate) const KIND: u32 = u32::from_le_bytes(*b"wkv\x01");

/// The kind of a root with one slot.
pub(crate) const SINGLE_SLOT: u32 = u32::from_le_bytes(*b"wkv\0");

/// Maximum number of concurrent intents.
pub(crate) const SLOTS: usize = 16;

/// The name of the root, which no map can have.
pub(crate) const NAME: &[u8] = b"";

/// The tag of links to intents; the link to the root object has none.
pub(crate) const INTENT: Tag = Tag::new(2);

persistent! {
    /// The root object.
    pub(crate) struct Own [size: 128, align: 64] {
        /// The intents of the commits in progress.
        pub intents: [PSlot; SLOTS],
    }

    /// The root object with a single slot.
    pub(crate) struct SingleSlot [size: 8] {
        /// The intent of the batch in progress.
        pub intent: PSlot,
    }

    /// The fixed part of an intent.
    pub(crate) struct Intent [size: 16] {
        bytes: PWord,
        count: PWord,
    }
}

const SIZE: u64 = size_of::<Intent>() as u64;

const UPSERT: u8 = 1;
const REMOVE: u8 = 2;

/// Bytes before a change's name.
const HEAD: usize = 8;

/// The new value of one key of one map; `None`: removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyChange<'b> {
    pub map: &'b str,
    pub key: &'b [u8],
    pub value: Option<&'b [u8]>,
}

impl KeyChange<'_> {
    /// Returns its length in an intent, in bytes.
    pub fn len(&self) -> usize {
        HEAD + self.map.len() + self.key.len() + self.value.map_or(0, <[u8]>::len)
    }

    /// Writes it at the beginning of `into`, and returns the rest of `into`. The lengths have been checked.
    fn write<'t>(&self, into: &'t mut [u8]) -> &'t mut [u8] {
        let value = self.value.unwrap_or_default();
        let verb = if self.value.is_some() { UPSERT } else { REMOVE };
        let (head, rest) = into.split_at_mut(HEAD);
        head[0] = verb;
        head[1] = self.map.len() as u8;
        head[2..4].copy_from_slice(&(self.key.len() as u16).to_le_bytes());
        head[4..].copy_from_slice(&(value.len() as u32).to_le_bytes());
        [self.map.as_bytes(), self.key, value]
            .into_iter()
            .fold(rest, |rest, part| {
                let (place, rest) = rest.split_at_mut(part.len());
                place.copy_from_slice(part);
                rest
            })
    }
}

impl<'b> KeyChange<'b> {
    /// Takes the change at the beginning of `from`.
    fn read(from: &mut &'b [u8]) -> Option<KeyChange<'b>> {
        let head: [u8; HEAD] = from.split_off(..HEAD)?.try_into().ok()?;
        let [verb, name, k0, k1, v0, v1, v2, v3] = head;
        let name = from.split_off(..usize::from(name))?;
        let key = from.split_off(..usize::from(u16::from_le_bytes([k0, k1])))?;
        let value = from.split_off(..u32::from_le_bytes([v0, v1, v2, v3]) as usize)?;
        Some(KeyChange {
            map: str::from_utf8(name).ok()?,
            key,
            value: match verb {
                UPSERT => Some(value),
                REMOVE if value.is_empty() => None,
                _ => return None,
            },
        })
    }
}

impl Intent {
    /// Returns the fixed part of an intent of this many bytes.
    pub fn new(bytes: usize, count: usize) -> Intent {
        Intent {
            bytes: PWord::new(bytes as u64),
            count: PWord::new(count as u64),
        }
    }

    /// Writes the changes, which fill `into`.
    pub fn write<'b>(changes: impl Iterator<Item = KeyChange<'b>>, into: &mut [u8]) {
        changes.fold(into, |rest, change| change.write(rest));
    }

    /// Returns the changes of an intent, and its footprint.
    pub fn read<M: Media>(heap: &Access<M>, link: Link) -> Result<(Vec<KeyChange<'_>>, usize), heap::Error> {
        let offset = link.offset().ok_or(damaged("a null link to an intent", 0))?;
        let wrong = || damaged("an intent is malformed", offset.get());
        let intent: &Intent = heap.at(offset)?;
        let media = heap.media();
        let bytes = usize::try_from(intent.bytes.load(media)).map_err(|_| wrong())?;
        let count = usize::try_from(intent.count.load(media)).map_err(|_| wrong())?;
        let footprint = footprint::<Intent>(bytes).ok_or_else(wrong)?;
        let tail = Offset::new(offset.get() + SIZE).ok_or_else(wrong)?;
        let mut rest = heap.bytes(tail, bytes)?;
        let mut changes = Vec::new();
        while !rest.is_empty() {
            changes.push(KeyChange::read(&mut rest).ok_or_else(wrong)?);
        }
        if changes.len() != count {
            return Err(wrong());
        }
        Ok((changes, footprint))
    }
}

fn damaged(what: &'static str, offset: u64) -> heap::Error {
    heap::Error::Damaged { what, offset }
}

/// Traces the roots of one kind.
pub(crate) struct Tracer {
    kind: u32,
}

impl Tracer {
    const SLOTS: Tracer = Tracer { kind: KIND };
    pub const SINGLE_SLOT: Tracer = Tracer { kind: SINGLE_SLOT };
}

// SAFETY: it reports all slots of the root; intents link to nothing.
unsafe impl<M: Media> Trace<M> for Tracer {
    fn kind(&self) -> u32 {
        self.kind
    }

    fn trace(&self, heap: &Access<M>, link: Link, children: &mut Vec<Link>) -> Result<u64, heap::Error> {
        let offset = link.offset().ok_or(damaged("a null link to a root", 0))?;
        let wrong = || damaged("the database's root is malformed", offset.get());
        let media = heap.media();
        let len = if link.tag() == INTENT {
            let bytes = heap.at::<Intent>(offset)?.bytes.load(media);
            footprint::<Intent>(usize::try_from(bytes).map_err(|_| wrong())?)
        } else if self.kind == SINGLE_SLOT {
            children.push(heap.at::<SingleSlot>(offset)?.intent.load(media));
            footprint::<SingleSlot>(0)
        } else {
            let own = heap.at::<Own>(offset)?;
            children.extend(own.intents.iter().map(|slot| slot.load(media)));
            footprint::<Own>(0)
        };
        Ok(len.ok_or_else(wrong)? as u64)
    }
}

/// Returns the tracers of the database's own roots.
pub(crate) fn tracers<M: Media>() -> [Arc<dyn Trace<M>>; 2] {
    [Arc::new(Tracer::SLOTS), Arc::new(Tracer::SINGLE_SLOT)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Owned = (String, Vec<u8>, Option<Vec<u8>>);

    fn change((map, key, value): &Owned) -> KeyChange<'_> {
        KeyChange {
            map,
            key,
            value: value.as_deref(),
        }
    }

    proptest! {
        /// Changes read back as written. Truncated or altered, they decode to some changes or none, and never panic.
        #[test]
        fn changes_are_read_as_written(
            changes in prop::collection::vec(("\\PC{1,9}", any::<Vec<u8>>(), any::<Option<Vec<u8>>>()), 0..6),
            cut: prop::sample::Index,
            noise: Vec<u8>,
        ) {
            let mut bytes = vec![0; changes.iter().map(|owned| change(owned).len()).sum()];
            Intent::write(changes.iter().map(change), &mut bytes);
            let mut rest = &bytes[..];
            for owned in &changes {
                prop_assert_eq!(KeyChange::read(&mut rest), Some(change(owned)));
            }
            prop_assert!(rest.is_empty());
            for bytes in [&bytes[..cut.index(bytes.len() + 1)], &noise] {
                let mut rest = bytes;
                while KeyChange::read(&mut rest).is_some() {}
                prop_assert!(rest.len() <= bytes.len());
            }
        }
    }
}

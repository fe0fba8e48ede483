//! "If the node overflows (or underflows), the node is copied to a new larger (or smaller) node and then the
//! parent pointer is atomically swapped" (RECIPE §6.4).
//!
//! The copy has the same children and no emptied entries, so the copy of a node without room may have the same size, or
//! a smaller one.

use super::Writer;
use super::locate::Place;
use art::{Child, Children, Kind, Tagged, child_tag};
use heap::Error;
use pmem::{Erased, Link, LinkAndPersist, Locked, Media, Persisted};

impl<'a, M: Media> Writer<'a, M> {
    /// Inserts the key below a byte that has no child. If the node has room, this costs, for N4 and N256, 2
    /// write-backs and 2 fences; for N16 and N48, 3 and 3.
    pub(super) fn insert(
        &self,
        place: &Place<'a>,
        locked: Locked<'a, M>,
        byte: u8,
        value: &[u8],
    ) -> Result<(), Error> {
        let leaf = self.persist_leaf(value)?;
        if place.node.has_room(self.media()) {
            let _durable = place.node.append(self.media(), leaf, byte);
            return Ok(());
        }
        let copy = self.persist_copy(place, Link::NULL, |children| {
            children.add(Some(byte), Child::Durable(leaf, Kind::Leaf, 0));
        })?;
        self.replace(place, locked, copy)
    }

    /// Replaces the node by a smaller one without the child. Returns the lock if there is no memory.
    pub(super) fn shrink(
        &self,
        place: &Place<'a>,
        locked: Locked<'a, M>,
        without: Link,
    ) -> Result<Option<Locked<'a, M>>, Error> {
        match self.persist_copy(place, without, |_| ()) {
            Err(Error::Full { .. }) => Ok(Some(locked)),
            copy => self.replace(place, locked, copy?).map(|()| None),
        }
    }

    /// Writes a durable copy of the place's node, with its children except for one object, and with what `hang` adds.
    fn persist_copy(
        &self,
        place: &Place<'a>,
        without: Link,
        hang: impl for<'e> FnOnce(&mut Children<'e, 'a>),
    ) -> Result<(Persisted<'a, Erased>, Kind), Error> {
        let (ends, links) = place.node.others(self.media(), without);
        let list = links.into_iter().map(|link| (link.byte(), link)).collect();
        self.persist_node(place.level, place.node.prefix(self.media()), |children| {
            *children = Children::of(ends, list);
            hang(children);
        })
    }

    /// Commit: the parent's pointer leads to the copy.
    fn replace(
        &self,
        place: &Place<'a>,
        locked: Locked<'a, M>,
        (copy, kind): (Persisted<'a, Erased>, Kind),
    ) -> Result<(), Error> {
        let parent = self.lock_parent(place.at)?;
        let tag = child_tag(kind, parent.link.byte(), 0);
        let _durable = parent
            .slot
            .publish::<LinkAndPersist, M, _>(self.media(), copy, tag)
            .commit();
        drop(parent);
        locked.retire();
        self.retire(place.at, art::Node::size(&place.node));
        Ok(())
    }
}

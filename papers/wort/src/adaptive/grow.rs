//! A node that cannot accept another child in place is replaced by a copy with that child: of the next larger kind if
//! the node was full, or of its own kind, if the scheme changes nodes by copies (ART+CoW's N4 and N16).

use super::Scheme;
use super::build::{children_of, draft_node};
use super::locate::{Passed, Writer};
use art::{Child, Kind, Tagged, draft_leaf};
use heap::Error;
use pmem::{Media, Purpose, persist_scope};

impl<S: Scheme, M: Media> Writer<'_, S, M> {
    /// Replaces the node by a copy that contains a new leaf. Costs 2 fences; a write-back for the leaf, for each line
    /// of the copy, and for the slot.
    pub(super) fn add_to_copy(&self, passed: &Passed<'_, S>, byte: u8, value: &[u8]) -> Result<(), Error> {
        let media = self.heap.media();
        let Passed { node, place, .. } = passed;
        persist_scope(media, Purpose::Node, |batch| {
            let leaf = draft_leaf(self.heap, self.key, value, &batch)?
                .flush(&batch)
                .erased();
            let mut children = children_of(*node, media, None);
            children.add(Some(byte), Child::New(leaf, Kind::Leaf, 0));
            let (copy, kind) = draft_node::<S, M>(self.heap, &batch, passed.header(self.heap)?, children)?;
            let fenced = batch.fence();
            self.publish(place, copy.persisted(&fenced), kind, place.link.aux());
            Ok::<_, Error>(())
        })?;
        self.retire_node(place.link, *node);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::locate::Found;
    use super::super::{Prefix, Tree};
    use super::*;
    use crate::art_cow::ByCopy;
    use crate::root::Root;
    use crate::woart::InPlace;
    use heap::Guard;
    use index::conformance::IndexInFile;
    use index::{Index, OnHeap};
    use pmem::Hardware;
    use std::marker::PhantomData;

    /// The parent of `key`'s leaf.
    fn above<'t, S: Scheme>(tree: &'t Tree<S, Hardware>, guard: &'t Guard, key: &'t [u8]) -> Passed<'t, S> {
        // SAFETY: the test holds the guard.
        let heap = unsafe { tree.heap().access() };
        let root = Root::at(heap, tree.root()).expect("a root");
        let writer: Writer<'_, S, _> = Writer {
            heap,
            guard,
            key,
            scheme: PhantomData,
        };
        match writer.locate(root).expect("no damage") {
            Found::Leaf {
                above: Some(above), ..
            } => above,
            _ => panic!("no such key"),
        }
    }

    /// An interrupted change of a prefix leaves a header for fewer or more preceding bytes. Copies do not inherit it:
    /// neither larger ones nor smaller ones.
    fn copies_have_the_right_header<S: Scheme>() {
        for (lead, wrong) in [
            (&b"p"[..], 0),
            (b"prefix", 0),
            (b"prefix", 3),
            (b"prefixes that are long", 2),
        ] {
            for first in [3, 17] {
                let store = IndexInFile::<Tree<S, Hardware>>::create();
                let tree = store.index();
                let key = |byte: u8| [lead, &[byte]].concat();
                let put = |key: &[u8]| tree.upsert(key, b"value").expect("no error");
                put(b"other");
                (0..first).for_each(|byte| put(&key(byte)));
                let (guard, first_key) = (heap::pin(), key(0));
                let node = above(tree, &guard, &first_key);
                let right = node.node.header(tree.heap().media());
                assert_eq!((right.depth(), right.level()), (1, lead.len()));
                let stale = Prefix::of(lead, wrong, lead.len());
                let word = &node.node.common().header;
                word.store_unpersisted(stale.to_word(), tree.heap().media());
                match first {
                    3 => (3..6).for_each(|byte| put(&key(byte))),
                    _ => (4..17).for_each(|byte| assert!(tree.remove(&key(byte)).expect("no error"))),
                }
                let copy = above(tree, &guard, &first_key);
                assert_ne!(copy.node.kind(), node.node.kind(), "it was copied");
                assert_eq!(copy.node.header(tree.heap().media()), right);
                assert_eq!(tree.check().expect("no error").found, [""; 0]);
            }
        }
    }

    #[test]
    fn copies_have_right_headers() {
        copies_have_the_right_header::<InPlace>();
        copies_have_the_right_header::<ByCopy>();
    }

    /// The node below a split has the header for its new place, and not only one from which that could be computed.
    fn a_split_leaves_the_right_header<S: Scheme>() {
        for lead in [&b"prefix"[..], b"prefixes that are long"] {
            for parts in 1..lead.len() {
                let store = IndexInFile::<Tree<S, Hardware>>::create();
                let tree = store.index();
                let put = |key: &[u8]| tree.upsert(key, b"value").expect("no error");
                put(b"other");
                let first_key = [lead, &[0]].concat();
                (0..3).for_each(|byte| put(&[lead, &[byte]].concat()));
                put(&[&lead[..parts], b"-"].concat());
                let guard = heap::pin();
                let below = above(tree, &guard, &first_key);
                let header = below.node.header(tree.heap().media());
                assert_eq!(header, Prefix::of(lead, parts + 1, lead.len()));
            }
        }
    }

    #[test]
    fn splits_leave_right_headers() {
        a_split_leaves_the_right_header::<InPlace>();
        a_split_leaves_the_right_header::<ByCopy>();
    }
}

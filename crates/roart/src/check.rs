//! The validator: walks everything and reports faults.

use crate::array::{self, ArrayRef};
use crate::fingerprint::{fingerprint, fingerprint_of};
use crate::inline::{self, InlineRef};
use crate::node::Node;
use crate::prefix::Prefix;
use crate::{Roart, Variant};
use art::{Kind, LONG_SKIP, LeafRef, Tagged, child_tag, report};
use index::Faults;
use pmem::{Fault, Link, Media};

/// An object still to check.
struct Item {
    link: Link,
    /// The level and the prefix of its parent, and its byte there (`None`: a key that ends there); `None` for the
    /// root.
    parent: Option<(usize, Prefix, Option<u8>)>,
    in_array: bool,
}

impl<M: Media, V: Variant> Roart<M, V> {
    /// Every fault of the structure.
    pub(crate) fn check_structure(&self) -> Faults {
        // Beside writers its reports may be wrong, but the guard keeps the objects that it reads from being reused.
        let _guard = heap::pin();
        let mut faults = Faults::default();
        let mut stack = vec![Item {
            link: self.root,
            parent: None,
            in_array: false,
        }];
        while let Some(item) = stack.pop() {
            faults.objects += 1;
            let checked = match item.link.kind() {
                Kind::Leaf => self.check_leaf(&item, &mut faults),
                Kind::Array => self.check_array(&item, &mut stack, &mut faults),
                Kind::Inline if V::INLINE => self.check_inline(&item, &mut faults),
                kind if kind.is_inner() => self.check_node(&item, &mut stack, &mut faults),
                _ => Err(art::damaged("link's kind", item.link)),
            };
            if let Err(error) = checked {
                report(&mut faults, item.link, error.what);
            }
        }
        faults
    }

    fn check_leaf(&self, item: &Item, faults: &mut Faults) -> Result<(), Fault> {
        faults.keys += 1;
        let leaf = LeafRef::at(&self.heap, item.link)?;
        if let Some(fault) = leaf.fault(&self.heap) {
            report(faults, item.link, fault);
        }
        if item.in_array && fingerprint_of(item.link) != fingerprint(leaf.key()) {
            report(
                faults,
                item.link,
                "the fingerprint in the leaf array does not match the key",
            );
        }
        if let Some((level, prefix, byte)) = item.parent {
            let tag = child_tag(Kind::Leaf, byte.unwrap_or_default(), 0);
            if !item.in_array && item.link.tag() != tag {
                report(faults, item.link, "the link to a leaf has unused bits set");
            }
            let path = leaf.key().get(..level).unwrap_or_default();
            if path.len() < level
                || !path.ends_with(prefix.as_bytes())
                || leaf.key().get(level).copied() != byte
            {
                report(faults, item.link, "the key does not lead to its leaf");
            }
        }
        Ok(())
    }

    fn check_array(&self, item: &Item, stack: &mut Vec<Item>, faults: &mut Faults) -> Result<(), Fault> {
        let array = ArrayRef::at(&self.heap, item.link)?;
        if let Some(fault) = array::fault::<M, V>(&array, item.link, &self.heap) {
            report(faults, item.link, fault);
        }
        // Links of other kinds are faults and not followed: they could lead back here.
        let leaves = array
            .leaves(self.heap.media())
            .filter(|link| link.kind() == Kind::Leaf);
        stack.extend(leaves.map(|link| Item {
            link,
            parent: item.parent,
            in_array: true,
        }));
        Ok(())
    }

    fn check_inline(&self, item: &Item, faults: &mut Faults) -> Result<(), Fault> {
        let array = InlineRef::at(&self.heap, item.link)?;
        let mut path = Vec::new();
        if let Some((level, prefix, Some(byte))) = &item.parent
            && prefix.as_bytes().len() == *level
        {
            path.extend_from_slice(prefix.as_bytes());
            path.push(*byte);
        }
        let (fault, keys) = inline::fault(&array, item.link, &path, &self.heap);
        faults.keys += keys;
        if let Some(fault) = fault {
            report(faults, item.link, fault);
        }
        Ok(())
    }

    fn check_node(&self, item: &Item, stack: &mut Vec<Item>, faults: &mut Faults) -> Result<(), Fault> {
        let media = self.heap.media();
        let node = Node::at(&self.heap, item.link)?;
        let level = node.header().level(media);
        let prefix = node.header().prefix(media);
        if let Some((above, _, byte)) = item.parent {
            if level <= above || usize::from(item.link.aux()) != (level - above - 1).min(LONG_SKIP.into()) {
                report(faults, item.link, "the node's level does not match its link");
                return Ok(()); // its children could lead back up
            }
            let kept = prefix.as_bytes();
            let branch = (level - above <= kept.len()).then(|| kept[kept.len() - (level - above)]);
            if branch.is_some() && branch != byte {
                report(
                    faults,
                    item.link,
                    "the node's prefix does not match the path to it",
                );
            }
        }
        let mut seen = [false; 256];
        let mut count = 0;
        for (position, slot) in node.slots().iter().enumerate() {
            let link = slot.load(media);
            if link.is_null() {
                continue;
            }
            count += 1;
            let byte = link.byte();
            let misplaced = node.kind() == Kind::N256 && position != usize::from(byte);
            if misplaced || std::mem::replace(&mut seen[usize::from(byte)], true) {
                report(
                    faults,
                    item.link,
                    "two children for one byte, or a child under another byte",
                );
            }
            stack.push(Item {
                link,
                parent: Some((level, prefix, Some(byte))),
                in_array: false,
            });
        }
        let ends = node.header().ends.load(media);
        if !ends.is_null() {
            count += 1;
            if ends.kind() != Kind::Leaf {
                report(faults, item.link, "the child that ends at the node is not a leaf");
            }
            stack.push(Item {
                link: ends,
                parent: Some((level, prefix, None)),
                in_array: false,
            });
        }
        // All keys below have the prefix. This compares it with one of them; the checks of leaves and inline leaf
        // arrays compare each key with the prefix of the node right above it.
        let below = self.any_leaf((item.link, level))?;
        if let Some(path) = below.as_ref().and_then(|leaf| leaf.key().get(..level))
            && !path.ends_with(prefix.as_bytes())
        {
            report(
                faults,
                item.link,
                "the node's prefix does not match the keys below",
            );
        }
        // A crash during a removal, or a full pool, may leave a node with one child, but not without any.
        if item.parent.is_some() && count == 0 {
            report(faults, item.link, "an inner node without children");
        }
        Ok(())
    }
}

//! The validator: walks everything and reports faults of the structure.

use crate::read::any_leaf;
use crate::{Design, Digit, Kind, LeafRef, Node, NodeSite, Radix, Tagged, damaged};
use index::Faults;
use pmem::{Fault, Link, Media, Offset};

/// An object still to check.
struct Item<'g> {
    link: Link,
    /// The level of its parent, and a key below that node.
    parent: Option<(usize, Option<&'g [u8]>)>,
    /// Its digit in the parent; `None`: a key that ends there, or the top.
    digit: Option<u8>,
}

impl<D: Design, M: Media> Radix<D, M> {
    /// Every fault of the structure.
    pub(crate) fn check_structure(&self) -> Faults {
        // Beside writers its reports may be wrong, but the guard keeps the objects that it reads from being reused.
        let _guard = heap::pin();
        let mut faults = Faults::default();
        let mut stack = Vec::new();
        match self.top() {
            Ok(link) if link.is_null() => {}
            Ok(link) => stack.push(Item {
                link,
                parent: None,
                digit: None,
            }),
            Err(error) => report(&mut faults, self.root(), error.what),
        }
        while let Some(item) = stack.pop() {
            faults.objects += 1;
            let checked = match item.link.kind() {
                Kind::Leaf => self.check_leaf(&item, &mut faults),
                kind if kind.is_inner() => self.check_node(&item, &mut stack, &mut faults),
                _ => Err(damaged("link's kind", item.link)),
            };
            if let Err(error) = checked {
                report(&mut faults, item.link, error.what);
            }
        }
        faults
    }

    fn check_leaf(&self, item: &Item<'_>, faults: &mut Faults) -> Result<(), Fault> {
        faults.keys += 1;
        let leaf = LeafRef::at(self.access(), item.link)?;
        if let Some(fault) = leaf.fault(self.access()) {
            report(faults, item.link, fault);
        }
        let Some((level, below)) = item.parent else {
            return Ok(());
        };
        let shared = below.map_or(usize::MAX, |below| D::Digit::shared(below, leaf.key()));
        let length = D::Digit::count(leaf.key());
        if shared < level || length < level || D::Digit::at(leaf.key(), level) != item.digit {
            report(faults, item.link, "the key does not lead to its leaf");
        }
        Ok(())
    }

    fn check_node<'g>(
        &'g self,
        item: &Item<'g>,
        stack: &mut Vec<Item<'g>>,
        faults: &mut Faults,
    ) -> Result<(), Fault> {
        let heap = self.access();
        let node = D::Node::at(heap, item.link)?;
        let depth = item.parent.map_or(0, |(above, _)| above + 1);
        let level = node.own_level(heap, item.link, depth)?;
        let key = any_leaf::<D, M>(heap, item.link, depth)?.map(|leaf| leaf.key());
        if let (Some((above, Some(beside))), Some(key)) = (item.parent, key)
            && (D::Digit::shared(beside, key) < above || D::Digit::at(key, above) != item.digit)
        {
            report(faults, item.link, "a node's keys do not lead to it");
        }
        if let Some(fault) = node.fault(heap, NodeSite { depth, level, key }) {
            report(faults, item.link, fault);
        }
        let mut seen = [false; 256];
        let mut count = 0;
        node.children(heap, 0..D::Digit::RADIX, |digit, link| {
            count += 1;
            if std::mem::replace(&mut seen[usize::from(digit)], true) {
                report(faults, item.link, "two children for one digit");
            }
            stack.push(Item {
                link,
                parent: Some((level, key)),
                digit: Some(digit),
            });
        });
        let ends = node.ends(heap);
        if !ends.is_null() {
            count += 1;
            if ends.kind() != Kind::Leaf {
                report(faults, item.link, "the child that ends at the node is not a leaf");
                return Ok(()); // it could lead back up
            }
            stack.push(Item {
                link: ends,
                parent: Some((level, key)),
                digit: None,
            });
        }
        // One child is no fault here: a crash during a removal, or a removal in a full pool, may leave one.
        if item.parent.is_some() && count == 0 {
            report(faults, item.link, "an inner node without children");
        }
        Ok(())
    }
}

/// Records a fault of the object at `link`.
pub fn report(faults: &mut Faults, link: Link, what: &str) {
    let offset = link.offset().map_or(0, Offset::get);
    faults.note(|| format!("{:?} at {offset:#x}: {what}", link.kind()));
}

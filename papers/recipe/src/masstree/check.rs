//! Checks of the structure: every node in its place, every key where its slices lead.
//!
//! The check walks a layer level by level along the siblings, so that it meets nodes without a separator too.
//! Half-done modifications, as a crash leaves them, are no fault.

use super::Masstree;
use super::link::{LEVELS, Target, is_node, len_of, node_tag, target};
use super::node::{Held, LINK, NO_KINDS, NodeRef, kind};
use super::slice::{CONTINUES, Slice};
use art::{LeafRef, damaged};
use index::{Faults, MAX_KEY};
use pmem::{Fault, Link, Media, Offset};
use std::collections::{HashSet, VecDeque};

/// A layer to be walked: its root, and the common prefix of its keys.
type Below = (Link, Vec<u8>);

struct Check<'i, M: Media> {
    index: &'i Masstree<M>,
    faults: Faults,
    layers: Vec<Below>,
    /// The places of the layers' roots.
    met: HashSet<Option<Offset>>,
}

impl<M: Media> Masstree<M> {
    /// Walks everything and reports faults.
    pub(super) fn check_structure(&self) -> Faults {
        let _guard = heap::pin();
        let mut check = Check {
            index: self,
            faults: Faults::default(),
            layers: Vec::new(),
            met: HashSet::new(),
        };
        check.faults.objects += 1;
        match self.top() {
            Ok(top) => check.layers.push((top, Vec::new())),
            Err(fault) => check.note(fault),
        }
        while let Some((root, prefix)) = check.layers.pop() {
            let done = check.check_layer(root, &prefix);
            if let Err(fault) = done {
                check.note(fault);
            }
            if check.faults.found.len() >= Faults::MAX {
                break;
            }
        }
        check.faults
    }
}

impl<M: Media> Check<'_, M> {
    fn note(&mut self, Fault { what, offset }: Fault) {
        self.faults.note(|| format!("offset {offset:#x}: {what}"));
    }

    fn report(&mut self, what: &'static str, link: Link) {
        self.note(damaged(what, link));
    }

    /// Walks a layer, and stops at a fault, since the rest could be anything.
    fn check_layer(&mut self, root: Link, prefix: &[u8]) -> Result<(), Fault> {
        let heap = &self.index.heap;
        let media = heap.media();
        let mut first = NodeRef::at(heap, root)?;
        if !self.met.insert(root.offset()) {
            return Err(damaged("two entries lead to a layer", root));
        }
        if first.level() >= LEVELS {
            return Err(damaged("level of a node", root));
        }
        if first.low(media) != 0 {
            return Err(damaged(
                "the first node of a level does not begin the layer",
                root,
            ));
        }
        let mut above: Option<VecDeque<(u64, Link)>> = None;
        loop {
            let mut children = VecDeque::new();
            let mut at = Some(first);
            while let Some(node) = at {
                self.faults.objects += 1;
                if let Some(above) = &mut above
                    && above.front().is_some_and(|(_, child)| node.is(*child))
                {
                    let separator = above.pop_front();
                    if separator != Some((node.low(media), node.link)) {
                        return Err(damaged(
                            "the separator of a node does not match its low bound",
                            node.link,
                        ));
                    }
                }
                at = node.sibling(heap)?;
                let high = at.map(|sibling| sibling.low(media));
                self.check_node(node, high, prefix, &mut children)?;
            }
            if let Some((_, link)) = above.and_then(|above| above.front().copied()) {
                return Err(damaged("a child is not among its level's siblings", link));
            }
            if first.level() == 0 {
                return Ok(());
            }
            let Some(&(_, child)) = children.front() else {
                return Err(damaged("an inner node without a child", first.link));
            };
            first = NodeRef::at(heap, child)?;
            above = Some(children);
        }
    }

    /// Checks a node: its words, its entries' order, and their contents.
    fn check_node(
        &mut self,
        node: NodeRef<'_>,
        high: Option<u64>,
        prefix: &[u8],
        children: &mut VecDeque<(u64, Link)>,
    ) -> Result<(), Fault> {
        let media = self.index.heap.media();
        let order = node.order(media);
        let kinds = node.node.kinds.load(media);
        if !order.is_sound() || kinds & NO_KINDS != 0 {
            return Err(damaged(
                "the permutation or the kinds of a node are invalid",
                node.link,
            ));
        }
        let mut last: Option<Slice> = None;
        for entry in order.entries() {
            let (slice, held) = if node.level() == 0 {
                node.held(media, kinds, entry)
            } else {
                let entry = &node.node.entries[entry];
                let (bytes, child) = (entry.slice.load(media), entry.word.load_link(media));
                (Slice { bytes, len: 0 }, Held::Link(child))
            };
            if last.is_some_and(|last| last >= slice) || slice.bytes < node.low(media) {
                return Err(damaged("the entries of a node are out of order", node.link));
            }
            last = Some(slice);
            // The entry belongs to the sibling: a split is unfinished.
            if high.is_some_and(|high| high <= slice.bytes) {
                continue;
            }
            match held {
                Held::Link(child) if node.level() > 0 => {
                    if child.tag() != node_tag(node.level() - 1) {
                        return Err(damaged("child of a node", node.link));
                    }
                    children.push_back((slice.bytes, child));
                }
                held => self.check_entry(node, kind(kinds, entry), slice, held, prefix)?,
            }
        }
        Ok(())
    }

    fn check_entry(
        &mut self,
        node: NodeRef<'_>,
        kind: u8,
        slice: Slice,
        held: Held,
        prefix: &[u8],
    ) -> Result<(), Fault> {
        let heap = &self.index.heap;
        let len = usize::from(slice.len);
        let is_padded = len >= 8 || slice.bytes & (u64::MAX >> (8 * len)) == 0;
        if !is_padded || (kind != LINK && kind >= CONTINUES) || (len == 0 && !prefix.is_empty()) {
            return Err(damaged(
                "the slice of an entry does not match its kind",
                node.link,
            ));
        }
        let link = match held {
            Held::Value(_) => {
                self.faults.keys += 1;
                return Ok(());
            }
            Held::Link(link) => link,
        };
        if is_node(link) {
            if prefix.len() + 8 >= MAX_KEY {
                return Err(damaged("layers deeper than a key is long", node.link));
            }
            let prefix = [prefix, &slice.bytes.to_be_bytes()].concat();
            self.layers.push((link, prefix));
            return Ok(());
        }
        let Some(Target::Leaf(_)) = target(link) else {
            return Err(damaged("link of an entry", node.link));
        };
        let leaf = LeafRef::at(heap, link)?;
        self.faults.objects += 1;
        self.faults.keys += 1;
        let depth = prefix.len() / 8;
        if let Some(what) = leaf.fault(heap) {
            self.report(what, link);
        } else if !leaf.key().starts_with(prefix)
            || Slice::of(leaf.key(), depth) != slice
            || len_of(link) != slice.len
        {
            self.report("the key does not lead to its leaf", link);
        }
        Ok(())
    }
}

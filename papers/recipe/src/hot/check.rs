//! The validator, and statistics of a tree's form.
//!
//! The first differences of neighbouring keys determine a Patricia trie: so each leaf's key is compared with the one
//! before, and must first differ from it at the bit where the paths to both part.

use super::Hot;
use super::layout::{Target, target};
use super::node::Node;
use super::plan::Plan;
use super::position::{Position, first_difference};
use super::walk::descend;
use art::LeafRef;
use index::Faults;
use pmem::{Fault, Link, Media, Offset, PSlot};

/// The composition of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Number of nodes.
    pub nodes: u64,
    /// Number of entries of all nodes.
    pub entries: u64,
    /// Bytes of all nodes.
    pub node_bytes: u64,
    /// Number of keys.
    pub keys: u64,
    /// Bytes of all leaves.
    pub leaf_bytes: u64,
    /// Sum over all keys of the nodes on their paths.
    pub depths: u64,
    /// Number of nodes on the longest path.
    pub height: usize,
}

/// A node on the walk's path.
struct Frame<'g> {
    link: Link,
    slots: &'g [PSlot],
    next: usize,
    /// The bit at which the path to the next entry parts from that to the one before.
    partings: Vec<Position>,
    first: Option<Position>,
}

impl<M: Media> Hot<M> {
    /// Computes the tree's form, by a walk over all of it. Approximate if other threads write to the tree meanwhile.
    ///
    /// # Errors
    ///
    /// If the pool is damaged.
    pub fn form(&self) -> Result<Form, Fault> {
        let _guard = heap::pin();
        let mut form = Form::default();
        self.go_through(&mut form, &mut |_, fault| Err(fault))?;
        Ok(form)
    }

    /// Every fault of the structure.
    pub(super) fn check_structure(&self) -> Faults {
        // Beside writers its reports may be wrong, but the guard keeps the objects that it reads from being reused.
        let _guard = heap::pin();
        let (mut faults, mut form) = (Faults::default(), Form::default());
        let mut note = |link: Link, fault: Fault| {
            let offset = link.offset().map_or(0, Offset::get);
            faults.note(|| format!("offset {offset:#x}: {}", fault.what));
            Ok(())
        };
        if let Err(fault) = self.go_through(&mut form, &mut note) {
            faults.note(|| fault.to_string());
        }
        faults.keys = form.keys;
        faults.objects = form.keys + form.nodes + 1;
        faults
    }

    /// Walks over all of it in order; `note` receives each fault, and returns whether to continue.
    fn go_through(
        &self,
        form: &mut Form,
        note: &mut dyn FnMut(Link, Fault) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let root = self.root()?;
        let mut path = vec![Frame {
            link: self.root,
            slots: std::slice::from_ref(&root.top),
            next: 0,
            partings: Vec::new(),
            first: None,
        }];
        let mut before: Option<&[u8]> = None;
        let mut parting: Option<Position> = None;
        while let Some(frame) = path.last_mut() {
            let Some(slot) = frame.slots.get(frame.next) else {
                path.pop();
                continue;
            };
            if let Some(last) = frame.next.checked_sub(1) {
                // If the paths part in several nodes, the highest one counts; after an empty slot, the first bit of
                // both.
                let here = frame.partings.get(last).copied();
                parting = [parting, here].into_iter().flatten().min();
            }
            frame.next += 1;
            let (link, above, holder) = (slot.load(self.heap.media()), frame.first, frame.link);
            let fault = |what| Fault {
                what,
                offset: link.bits() & Offset::MASK,
            };
            match target(link) {
                Target::Node(shape) => {
                    match Node::at(&self.heap, link, shape).and_then(|node| enter(node, link, above)) {
                        Ok(frame) => {
                            form.nodes += 1;
                            form.entries += shape.count as u64;
                            form.node_bytes += shape.size() as u64;
                            path.push(frame);
                        }
                        Err(fault) => note(link, fault)?,
                    }
                }
                Target::Leaf => {
                    let leaf = match LeafRef::at(&self.heap, link) {
                        Ok(leaf) => leaf,
                        Err(fault) => {
                            note(link, fault)?;
                            continue;
                        }
                    };
                    if let Some(what) = leaf.fault(&self.heap) {
                        note(link, fault(what))?;
                    }
                    let differs =
                        before.map(|before| (before < leaf.key(), first_difference(before, leaf.key())));
                    if differs.is_some_and(|found| found != (true, parting)) {
                        note(link, fault("the key does not lead to its leaf"))?;
                    }
                    (before, parting) = (Some(leaf.key()), None);
                    form.keys += 1;
                    form.leaf_bytes += leaf.extent() as u64;
                    form.depths += path.len() as u64 - 1;
                    form.height = form.height.max(path.len() - 1);
                }
                Target::Null if above.is_none() || has_live(&path, self.heap.media()) => {}
                Target::Null => note(holder, fault("a node without keys"))?,
                Target::Unknown => note(link, fault("link of a slot"))?,
            }
        }
        Ok(())
    }
}

/// Whether the deepest node has a child.
fn has_live<M: Media>(path: &[Frame<'_>], media: &M) -> bool {
    path.last()
        .is_some_and(|frame| frame.slots.iter().any(|slot| !slot.load(media).is_null()))
}

/// The frame of a node, if that is valid.
fn enter<'g>(node: Node<'g>, link: Link, mut above: Option<Position>) -> Result<Frame<'g>, Fault> {
    descend(&node, link, &mut above)?;
    let plan = Plan::of_ways(&node)?;
    let (shape, _) = plan.selection();
    if shape != node.shape {
        return Err(Fault {
            what: "a node's layout does not match its branching bits",
            offset: link.bits() & Offset::MASK,
        });
    }
    Ok(Frame {
        link,
        slots: node.slots,
        next: 0,
        partings: (1..plan.len()).map(|i| plan.parting(i - 1)).collect(),
        first: above,
    })
}

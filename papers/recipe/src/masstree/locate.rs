//! Locating a write: the way down, and the locks at its end.

use super::link::is_node;
use super::node::{Found, Held, NodeRef, descend};
use super::slice::Slice;
use super::{Masstree, root_at};
use art::{Tries, damaged};
use heap::{Access, Error, Guard};
use pmem::{Link, Locked, Media, PSlot};
use std::cell::RefCell;

/// One write.
#[derive(Clone, Copy)]
pub(super) struct Writer<'a, M: Media> {
    pub(super) index: &'a Masstree<M>,
    pub(super) heap: &'a Access<M>,
    pub(super) guard: &'a Guard,
    pub(super) key: &'a [u8],
    pub(super) held: &'a HeldNodes,
}

/// Nodes whose locks a writer holds while it takes others. In a damaged pool its way may lead to them again.
#[derive(Debug, Default)]
pub(super) struct HeldNodes(RefCell<Vec<Link>>);

/// Keeps a node among those that a writer holds, until dropped.
pub(super) struct Holding<'a> {
    held: &'a HeldNodes,
    before: usize,
}

impl HeldNodes {
    /// Whether the writer would deadlock with itself by taking the node's lock.
    pub(super) fn has(&self, node: NodeRef<'_>) -> bool {
        self.0.borrow().iter().any(|&held| node.is(held))
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.held.0.borrow_mut().truncate(self.before);
    }
}

/// A writer's layer: the borders of the layers above through which it came down. They are hints: other writers may
/// have moved the entry from there to the right, or removed the border.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    pub(super) above: Vec<Link>,
}

/// The border of the key, not locked.
pub(super) struct Place<'a> {
    pub(super) layer: Layer,
    pub(super) border: NodeRef<'a>,
    /// Whether it was reached from its left sibling rather than from a parent.
    pub(super) came_right: bool,
}

/// A node and its lock.
pub(super) struct LockedNode<'a, M: Media> {
    pub(super) node: NodeRef<'a>,
    pub(super) locked: Locked<'a, M>,
}

/// The entry that leads to a layer, locked.
pub(super) struct Above<'a, M: Media> {
    /// The border with the entry, and the entry's place there; `None` for layer 0.
    pub(super) border: Option<(NodeRef<'a>, usize)>,
    pub(super) locked: Locked<'a, M>,
    pub(super) slot: &'a PSlot,
    /// The layer's root.
    pub(super) root: Link,
}

impl Layer {
    /// Number of layers above.
    pub(super) fn depth(&self) -> usize {
        self.above.len()
    }
}

impl<'a, M: Media> Writer<'a, M> {
    pub(super) fn media(&self) -> &'a M {
        self.heap.media()
    }

    /// Records that the writer holds the lock of a node while it takes others.
    pub(super) fn holding(&self, node: NodeRef<'_>) -> Holding<'a> {
        let mut held = self.held.0.borrow_mut();
        let before = held.len();
        held.push(node.link);
        Holding {
            held: self.held,
            before,
        }
    }

    /// The key's slice in a layer.
    pub(super) fn slice(&self, layer: &Layer) -> Slice {
        Slice::of(self.key, layer.depth())
    }

    /// Finds the key's border, from the top down.
    pub(super) fn locate(&self) -> Result<Place<'a>, Error> {
        self.locate_below(Layer::default(), self.index.top()?, usize::MAX)
    }

    /// The key's border, from the root of a layer down. If the way leads into a layer of depth `layers`, it ends
    /// above that layer, at the border that leads there: the caller may hold locks of that layer.
    pub(super) fn locate_below(
        &self,
        mut layer: Layer,
        mut root: Link,
        layers: usize,
    ) -> Result<Place<'a>, Error> {
        let mut slice = self.slice(&layer);
        let border = |root, slice: Slice| {
            descend(self.heap, root, slice.bytes, 0)?.ok_or_else(|| damaged("root of a layer", root))
        };
        let mut place = Place {
            border: border(root, slice)?,
            layer: Layer::default(),
            came_right: false,
        };
        loop {
            match place.border.find(self.media(), slice) {
                Found::Held(Held::Link(link)) if is_node(link) => {
                    if !slice.continues() {
                        return Err(damaged("link of an entry", place.border.link).into());
                    }
                    layer.above.push(place.border.link);
                    if layer.depth() == layers {
                        return Ok(Place { layer, ..place });
                    }
                    root = link;
                    slice = self.slice(&layer);
                    place.border = border(root, slice)?;
                    place.came_right = false;
                }
                Found::Absent { beyond: true } => match self.right_of(place.border, slice.bytes)? {
                    Some(right) => {
                        place.border = right;
                        place.came_right = true;
                    }
                    None => return Ok(Place { layer, ..place }),
                },
                _ => return Ok(Place { layer, ..place }),
            }
        }
    }

    /// Finds the layer again, from the top down; returns `false` if the key has no such layer any more.
    fn find_again(&self, layer: &mut Layer) -> Result<bool, Error> {
        let depth = layer.depth();
        let place = self.locate_below(Layer::default(), self.index.top()?, depth)?;
        let there = place.layer.depth() == depth;
        if there {
            *layer = place.layer;
        }
        Ok(there)
    }

    /// The root of a layer, not locked; `None` if there is no such layer any more.
    pub(super) fn root_of(&self, layer: &mut Layer) -> Result<Option<Link>, Error> {
        let mut tries = Tries::default();
        loop {
            let Some(&above) = layer.above.last() else {
                return Ok(Some(self.index.top()?));
            };
            let slice = Slice::of(self.key, layer.depth() - 1);
            let mut border = NodeRef::at(self.heap, above)?;
            loop {
                match border.find(self.media(), slice) {
                    Found::Held(Held::Link(link)) if is_node(link) => return Ok(Some(link)),
                    Found::Absent { beyond: true } => match border.right(self.heap, slice.bytes)? {
                        Some(right) => border = right,
                        None => break,
                    },
                    _ => break,
                }
            }
            if !self.find_again(layer)? {
                return Ok(None);
            }
            self.lost(&mut tries)?;
        }
    }

    /// Locks the entry that leads to a layer; returns `None` if there is no such layer any more.
    pub(super) fn lock_above(&self, layer: &mut Layer) -> Result<Option<Above<'a, M>>, Error> {
        let mut tries = Tries::default();
        loop {
            let Some(&above) = layer.above.last() else {
                return self.lock_root().map(Some);
            };
            let slice = Slice::of(self.key, layer.depth() - 1);
            let border = NodeRef::at(self.heap, above)?;
            if let Ok(locked) = self.lock(border)? {
                let order = border.order(self.media());
                let (place, found) = border.search(self.media(), order, slice);
                match found {
                    Found::Held(Held::Link(root)) if is_node(root) => {
                        return Ok(Some(Above {
                            border: Some((border, place)),
                            locked,
                            slot: border.node.entries[order.entry(place)].word.slot(),
                            root,
                        }));
                    }
                    Found::Absent { beyond: true } => match border.right(self.heap, slice.bytes)? {
                        Some(right) => {
                            layer.above.pop();
                            layer.above.push(right.link);
                            continue;
                        }
                        None => return Ok(None),
                    },
                    _ => return Ok(None),
                }
            }
            if !self.find_again(layer)? {
                return Ok(None);
            }
            self.lost(&mut tries)?;
        }
    }

    fn lock_root(&self) -> Result<Above<'a, M>, Error> {
        let root = root_at(self.heap, self.index.root)?;
        let Ok(mut locked) = root.lock.lock(self.media(), self.heap.generation()) else {
            return Err(damaged("lock of a root", self.index.root).into());
        };
        if locked.is_stale() {
            root.top.settle(self.media());
            locked.repaired();
        }
        Ok(Above {
            border: None,
            locked,
            slot: &root.top,
            root: root.top.load(self.media()),
        })
    }

    /// Locks the node of a level for a slice, and returns whether it was reached from its left sibling; `None` if
    /// there is no such level below `root`, or other writers have removed the node meanwhile.
    pub(super) fn lock_taking(
        &self,
        root: Link,
        slice: u64,
        level: u8,
    ) -> Result<Option<(LockedNode<'a, M>, bool)>, Error> {
        let Some(mut node) = descend(self.heap, root, slice, level)? else {
            return Ok(None);
        };
        let mut came_right = false;
        loop {
            while let Some(right) = self.right_of(node, slice)? {
                (node, came_right) = (right, true);
            }
            let Ok(locked) = self.lock(node)? else {
                return Ok(None);
            };
            if node.right(self.heap, slice)?.is_none() {
                return Ok(Some((LockedNode { node, locked }, came_right)));
            }
        }
    }

    /// Counts a failed attempt because of another writer.
    ///
    /// # Errors
    ///
    /// If there were too many for a sound pool.
    pub(super) fn lost(&self, tries: &mut Tries) -> Result<(), Error> {
        if tries.go_on(art::Missed::Lost, self.media()) {
            return Ok(());
        }
        Err(damaged("key without a place", self.index.root).into())
    }

    /// Frees an object's chunk once no reader can hold it.
    #[track_caller]
    pub(super) fn retire(&self, link: Link, len: usize) {
        art::retire(self.heap, self.guard, link, len);
    }
}

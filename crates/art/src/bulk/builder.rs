//! A radix tree built bottom-up from keys in ascending order: one path is kept open, and nodes that the keys have
//! passed are closed.
//!
//! I1 `open` are the nodes on the path of the last key, from the top down; each has its complete children.
//! I2 Behind the last of them, in the *open slot* (of the last key's digit), is one of: pairs that are not built yet
//!    (`bunch`, at most as many as [allowed](Layout::max) there), one complete object (`built`), or nothing.
//! I3 A part has two *borders*: the first key that may be in it, and the first that may be in the next part. A node
//!    whose string is a prefix of a border may get children from the adjacent part. So neither the node nor what hangs
//!    from it is finished here: they are returned as [`Item`]s, from which a builder without borders makes the top of
//!    the tree.

use super::bunch::Bunch;
use super::{Layout, Spot};
use crate::{Child, Children, Digit, Tagged, child_tag};
use heap::{Access, Error};
use index::Reading;
use pmem::{Fenced, Link, Media, PersistBatch};

/// Values longer than this are written at once, instead of being copied until their parent is known.
const LONG: usize = 1 << 10;

/// A node on the open path.
struct Open<'e, 'h> {
    level: usize,
    children: Children<'e, 'h>,
}

/// An object that a part leaves for the top of the tree, in the order of its keys.
#[derive(Debug)]
pub(super) enum Item<C> {
    /// A pair that was not built.
    Pair(Vec<u8>, Vec<u8>),
    /// The leaf of a key.
    Leaf(Vec<u8>, C),
    /// The children of a node, its level, and the key of some leaf below it.
    Node(Vec<u8>, usize, Vec<(Option<u8>, C)>),
}

/// Keys near which other parts may have theirs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Borders<'p> {
    pub(super) from: Option<&'p [u8]>,
    pub(super) until: Option<&'p [u8]>,
}

impl Borders<'_> {
    /// Whether another part may have keys that share `level` digits with this one.
    fn reach<D: Digit>(&self, key: &[u8], level: usize) -> bool {
        let mut borders = [self.from, self.until].into_iter().flatten();
        borders.any(|border| D::shared(border, key) >= level)
    }
}

/// A tree, or a part of it, under construction.
pub(super) struct Builder<'b, 'e, 'h, L: Layout, M: Media> {
    heap: &'h Access<M>,
    batch: &'b PersistBatch<'e, 'h, M>,
    borders: Borders<'b>,
    open: Vec<Open<'e, 'h>>,
    bunch: Bunch,
    /// Maximum number of pairs in the bunch; an empty one accepts more.
    max: usize,
    built: Option<Child<'e, 'h>>,
    /// The last key.
    key: Option<Vec<u8>>,
    items: Vec<Item<Child<'e, 'h>>>,
    layout: std::marker::PhantomData<L>,
}

impl<'b, 'e, 'h, L: Layout, M: Media> Builder<'b, 'e, 'h, L, M> {
    pub(super) fn new(heap: &'h Access<M>, batch: &'b PersistBatch<'e, 'h, M>, borders: Borders<'b>) -> Self {
        let root = L::ROOT_IS_NODE.then(|| Open {
            level: 0,
            children: Children::default(),
        });
        Builder {
            heap,
            batch,
            borders,
            open: root.into_iter().collect(),
            bunch: Bunch::default(),
            max: usize::MAX,
            built: None,
            key: None,
            items: Vec::new(),
            layout: std::marker::PhantomData,
        }
    }

    /// Adds all pairs of a part.
    pub(super) fn push_all(&mut self, pairs: &mut Reading<'_>) -> Result<(), index::Error> {
        while let Some((key, value)) = pairs.next()? {
            self.push(key, value)?;
        }
        Ok(())
    }

    /// Adds a pair, whose key is above all earlier ones.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        if value.len() > LONG {
            self.vacate(key)?;
            let leaf = self
                .heap
                .with_room(|| L::leaf(self.heap, self.batch, key, value))?;
            self.built = Some(leaf);
        } else {
            self.turn(key)?;
            if self.bunch.is_empty() {
                self.max = usize::MAX;
            }
            self.max = self.max.min(L::max(key, value));
            self.bunch.push(key, value);
        }
        self.pass(key);
        while self.bunch.len() > self.max {
            self.part(None)?;
        }
        Ok(())
    }

    /// Adds an item that a part has left.
    pub(super) fn push_item(&mut self, item: Item<Link>) -> Result<(), Error> {
        let (key, level, list) = match item {
            Item::Pair(key, value) => return self.push(&key, &value),
            Item::Leaf(key, leaf) => (key, None, vec![(None, leaf)]),
            Item::Node(key, level, list) => (key, Some(level), list),
        };
        let mut children = Children::default();
        for (digit, link) in list {
            children.add_reachable(digit, link, link.aux());
        }
        if let Err(error) = self.vacate(&key) {
            self.resume(children);
            return Err(error);
        }
        match level {
            Some(level) => self.open.push(Open { level, children }),
            None => self.built = children.ends,
        }
        self.pass(&key);
        Ok(())
    }

    #[inline]
    fn pass(&mut self, key: &[u8]) {
        let last = self.key.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
    }

    /// The digit of the last key.
    fn digit(&self, level: usize) -> Option<u8> {
        self.key.as_ref().and_then(|key| L::Digit::at(key, level))
    }

    /// Advances from the last key to the next: closes the nodes that this leaves. The open slot is then the next
    /// key's.
    fn turn(&mut self, next: &[u8]) -> Result<(), Error> {
        let Some(key) = &self.key else {
            return Ok(());
        };
        let shared = L::Digit::shared(key, next);
        if self.open.last().is_none_or(|top| top.level < shared) {
            // The same slot.
            if self.built.is_some() {
                self.open_node(shared);
                self.hang_open_slot()?;
            }
            return Ok(());
        }
        self.close_above(shared)
    }

    /// Advances to the next key, and leaves no pairs in its slot.
    fn vacate(&mut self, next: &[u8]) -> Result<(), Error> {
        self.turn(next)?;
        while !self.bunch.is_empty() {
            self.part(Some(next))?;
        }
        Ok(())
    }

    /// Completes the open slot, and all nodes with a greater level; leaves one open at this level.
    fn close_above(&mut self, level: usize) -> Result<(), Error> {
        self.hang_open_slot()?;
        while let Some(node) = self.open.pop_if(|top| top.level > level) {
            let above = self.open.last().map_or(level, |top| top.level.max(level));
            if self.open.last().is_none_or(|top| top.level < above) {
                self.open_node(above);
            }
            self.close(node, Some(above))?;
        }
        Ok(())
    }

    fn open_node(&mut self, level: usize) {
        self.open.push(Open {
            level,
            children: Children::default(),
        });
    }

    /// Builds a complete node, and hangs it in the last open one, whose level is `above`; near a border, leaves its
    /// children as an item.
    fn close(&mut self, mut node: Open<'e, 'h>, above: Option<usize>) -> Result<(), Error> {
        let key = self.key.as_deref().unwrap_or_default();
        if self.borders.reach::<L::Digit>(key, above.unwrap_or(0)) {
            let Children { ends, list } = node.children;
            let ends = ends.map(|child| (None, child));
            let list = list.into_iter().map(|(digit, child)| (Some(digit), child));
            let children: Vec<_> = ends.into_iter().chain(list).collect();
            if !children.is_empty() {
                self.items.push(Item::Node(key.to_vec(), node.level, children));
            }
            return Ok(());
        }
        let spot = Spot {
            key,
            depth: above.map_or(0, |above| above + 1),
            level: node.level,
        };
        let built = self
            .heap
            .with_room(|| L::node(self.heap, self.batch, spot, &mut node.children));
        match built {
            Ok(child) => {
                self.hang(child);
                Ok(())
            }
            Err(error) => {
                // For `abandon`.
                self.open.push(node);
                Err(error)
            }
        }
    }

    /// Hangs a child under the last key's digit in the last open node; without an open node, it becomes the top.
    fn hang(&mut self, child: Child<'e, 'h>) {
        let digit = self
            .open
            .last()
            .map(|top| top.level)
            .and_then(|level| self.digit(level));
        match (self.open.last_mut(), child) {
            (None, child) => self.built = Some(child),
            // Its link does not state this digit yet.
            (Some(top), Child::Reachable(link)) => top.children.add_reachable(digit, link, link.aux()),
            (Some(top), child) => top.children.add(digit, child),
        }
    }

    /// Completes the object in the open slot.
    fn hang_open_slot(&mut self) -> Result<(), Error> {
        let len = self.bunch.len();
        if len > 0 {
            self.hang_pairs(0, len)?;
            self.bunch.clear();
        } else if let Some(child) = self.built.take() {
            let key = self.key.as_deref().unwrap_or_default();
            let level = self.open.last().map_or(0, |top| top.level);
            if self.borders.reach::<L::Digit>(key, level) {
                self.items.push(Item::Leaf(key.to_vec(), child));
            } else {
                self.hang(child);
            }
        }
        Ok(())
    }

    /// Builds the object for these pairs of the bunch, which share their digit in the last open node; near a border,
    /// leaves them as items.
    fn hang_pairs(&mut self, from: usize, to: usize) -> Result<(), Error> {
        let top = self.open.last().map(|top| top.level);
        let group = self.bunch.group(from..to);
        if self
            .borders
            .reach::<L::Digit>(self.bunch.key(from), top.unwrap_or(0))
        {
            let pairs = group.pairs();
            self.items
                .extend(pairs.map(|(key, value)| Item::Pair(key.to_vec(), value.to_vec())));
            return Ok(());
        }
        let depth = top.map_or(0, |level| level + 1);
        let child = self
            .heap
            .with_room(|| L::group(self.heap, self.batch, depth, group.clone()))?;
        let digit = top.and_then(|level| L::Digit::at(self.bunch.key(from), level));
        match self.open.last_mut() {
            Some(top) => top.children.add(digit, child),
            None => self.built = Some(child),
        }
        Ok(())
    }

    /// Opens a node where the pairs in the open slot (and the next key, if given) part, and builds the pairs whose
    /// digits there the path has passed; the rest stays in the open slot.
    fn part(&mut self, next: Option<&[u8]>) -> Result<(), Error> {
        let len = self.bunch.len();
        let level = L::Digit::shared(self.bunch.key(0), next.unwrap_or(self.bunch.key(len - 1)));
        self.open_node(level);
        let digit = |bunch: &Bunch, i: usize| L::Digit::at(bunch.key(i), level);
        let mut from = 0;
        for to in 1..len {
            if digit(&self.bunch, to) != digit(&self.bunch, from) {
                self.hang_pairs(from, to)?;
                from = to;
            }
        }
        if next.is_some_and(|next| L::Digit::at(next, level) != digit(&self.bunch, from)) {
            self.hang_pairs(from, len)?;
            from = len;
        }
        self.bunch.keep_from(from);
        Ok(())
    }

    /// Completes the tree, and returns the children of its root.
    pub(super) fn finish(&mut self) -> Result<Children<'e, 'h>, Error> {
        if L::ROOT_IS_NODE {
            self.close_above(0)?;
            return Ok(self.open.pop().map(|root| root.children).unwrap_or_default());
        }
        self.complete()?;
        Ok(Children {
            ends: self.built.take(),
            list: Vec::new(),
        })
    }

    /// Takes back children that could not be hung anywhere, for [`abandon`](Builder::abandon).
    pub(super) fn resume(&mut self, children: Children<'e, 'h>) {
        self.open.push(Open { level: 0, children });
    }

    /// Completes the part, and returns its items for the top of the tree.
    pub(super) fn finish_part(&mut self) -> Result<Vec<Item<Child<'e, 'h>>>, Error> {
        self.complete()?;
        Ok(std::mem::take(&mut self.items))
    }

    fn complete(&mut self) -> Result<(), Error> {
        self.hang_open_slot()?;
        while let Some(node) = self.open.pop() {
            let above = self.open.last().map(|top| top.level);
            self.close(node, above)?;
        }
        Ok(())
    }

    /// Everything that was built and has no parent. The caller gives it back.
    pub(super) fn abandon(&mut self) -> Vec<Child<'e, 'h>> {
        let mut all: Vec<_> = self.built.take().into_iter().collect();
        for node in self.open.drain(..) {
            all.extend(node.children.ends);
            all.extend(node.children.list.into_iter().map(|(_, child)| child));
        }
        for item in self.items.drain(..) {
            match item {
                Item::Pair(..) => {}
                Item::Leaf(_, child) => all.push(child),
                Item::Node(_, _, children) => all.extend(children.into_iter().map(|(_, child)| child)),
            }
        }
        all
    }
}

impl<'e> Child<'e, '_> {
    /// The link to it, once it is durable; the caller owns it from now on.
    pub(super) fn into_link(self, fenced: &Fenced<'e>) -> Link {
        match self {
            Child::Reachable(link) => link,
            Child::New(object, kind, aux) => object.persisted(fenced).into_link(child_tag(kind, 0, aux)),
            Child::Durable(object, kind, aux) => object.into_link(child_tag(kind, 0, aux)),
        }
    }
}

impl<'e> Item<Child<'e, '_>> {
    /// The same with links, for other threads.
    pub(super) fn into_links(self, fenced: &Fenced<'e>) -> Item<Link> {
        match self {
            Item::Pair(key, value) => Item::Pair(key, value),
            Item::Leaf(key, leaf) => Item::Leaf(key, leaf.into_link(fenced)),
            Item::Node(key, level, children) => {
                let children = children.into_iter();
                let children = children.map(|(digit, child)| (digit, child.into_link(fenced)));
                Item::Node(key, level, children.collect())
            }
        }
    }
}

impl Item<Link> {
    /// The links in the item.
    pub(super) fn links(&self) -> Vec<Link> {
        match self {
            Item::Pair(..) => Vec::new(),
            Item::Leaf(_, leaf) => vec![*leaf],
            Item::Node(_, _, children) => children.iter().map(|(_, link)| *link).collect(),
        }
    }
}

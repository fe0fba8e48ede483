//! Lookups: no locks, no restart from the root.
//!
//! A reader descends by slices. It may reach a node left of its key's, if a split or a removal is unfinished or was
//! interrupted there: then it goes right. An entry with the reader's slice is valid even in that node (I5 of `node`),
//! so the reader follows the sibling only if its slice is above all entries of the node.

use super::Masstree;
use super::link::{Target, is_node, level_of, target};
use super::node::{Found, Held, NodeRef, prefetch_node};
use super::slice::Slice;
use art::{GROUP, LeafRef, damaged, prefetch_leaf, same};
use index::Value;
use pmem::{Fault, Link, Media, prefetch_range};

/// The position of a walk.
#[derive(Clone, Copy)]
struct Walk {
    link: Link,
    /// Number of layers above.
    depth: usize,
}

/// One step of a walk.
enum Step<'g> {
    /// To this node, or leaf.
    To(Walk),
    /// To the end.
    Ends(Option<Value<'g>>),
}

impl<M: Media> Masstree<M> {
    /// The value of a key.
    #[inline]
    pub(super) fn read(&self, key: &[u8]) -> Result<Option<Value<'_>>, Fault> {
        let mut walk = Walk {
            link: self.top()?,
            depth: 0,
        };
        loop {
            match self.step(key, walk)? {
                Step::To(next) => {
                    self.ask(key, next);
                    walk = next;
                }
                Step::Ends(value) => return Ok(value),
            }
        }
    }

    /// Reads all `keys` and reports the result for each.
    pub(super) fn read_many<'g>(
        &'g self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Fault> {
        let top = Walk {
            link: self.top()?,
            depth: 0,
        };
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            for key in keys {
                prefetch_range(key.as_ptr(), key.len());
            }
            let mut walks = [Some(top); GROUP];
            let mut busy = keys.len();
            while busy > 0 {
                for ((i, key), walk) in keys.iter().enumerate().zip(&mut walks) {
                    let Some(at) = *walk else { continue };
                    *walk = match self.step(key, at)? {
                        Step::To(next) => {
                            self.ask(key, next);
                            Some(next)
                        }
                        Step::Ends(value) => {
                            busy -= 1;
                            found(group * GROUP + i, value);
                            None
                        }
                    };
                }
            }
        }
        Ok(())
    }

    /// Prefetches the lines of the next step.
    #[inline(always)]
    fn ask(&self, key: &[u8], walk: Walk) {
        if is_node(walk.link) {
            prefetch_node(&self.heap, walk.link);
        } else {
            prefetch_leaf(&self.heap, walk.link, key);
        }
    }

    /// Steps from a node or a leaf.
    #[inline(always)]
    fn step(&self, key: &[u8], Walk { link, depth }: Walk) -> Result<Step<'_>, Fault> {
        let (heap, media) = (&self.heap, self.heap.media());
        if !is_node(link) {
            let leaf = LeafRef::at(heap, link)?;
            return Ok(Step::Ends(same(leaf.key(), key).then(|| leaf.value(heap))));
        }
        let node = NodeRef::at(heap, link)?;
        let slice = Slice::of(key, depth);
        let to = |link| Ok(Step::To(Walk { link, depth }));
        if level_of(link) > 0 {
            return to(node.child(media, slice.bytes)?);
        }
        match node.find(media, slice) {
            Found::Held(Held::Value(value)) => Ok(Step::Ends(Some(Value::Word(value.to_le_bytes())))),
            Found::Held(Held::Link(link)) => match target(link) {
                Some(Target::Leaf(_)) => to(link),
                Some(Target::Node(_)) if slice.continues() => Ok(Step::To(Walk {
                    link,
                    depth: depth + 1,
                })),
                _ => Err(damaged("link of an entry", node.link)),
            },
            Found::Absent { beyond: false } => Ok(Step::Ends(None)),
            Found::Absent { beyond: true } => match node.right(heap, slice.bytes)? {
                Some(right) => to(right.link),
                None => Ok(Step::Ends(None)),
            },
        }
    }
}

//! Lookups: no locks, no restart from the root. A reader looks through marks: the content below them is what was
//! there when it loaded the head.

use super::BwTree;
use super::aim::Aim;
use super::page::{Found, Page, Step};
use art::{GROUP, damaged, prefetch_range};
use index::Value;
use index::codec::SearchKey;
use pmem::{Fault, Media};

/// Maximum number of steps of a walk: only a cycle of siblings takes more.
const MAX_SIBLINGS: usize = 100_000;

impl<M: Media, const FULL: usize> BwTree<M, FULL> {
    /// The value of a key.
    #[inline]
    pub(super) fn read(&self, key: &[u8]) -> Result<Option<Value<'_>>, Fault> {
        let key = SearchKey::new(key);
        let mut page = Page::load(&self.heap, self.top()?)?;
        for _ in 0..MAX_SIBLINGS {
            page = match self.step(&key, page)? {
                Ok(next) => next,
                Err(found) => return Ok(found),
            };
        }
        Err(damaged(
            "more than 100000 siblings: the list has a cycle",
            page.cell,
        ))
    }

    /// Steps from a node to the next one, or ends there.
    #[inline(always)]
    fn step<'g>(
        &'g self,
        key: &SearchKey<'_>,
        page: Page<'g>,
    ) -> Result<Result<Page<'g>, Option<Value<'g>>>, Fault> {
        if page.level > 0 {
            return match page.step(&self.heap, Aim::to(key.bytes))? {
                Step::Child(next) | Step::Right(next) => Ok(Ok(next)),
            };
        }
        Ok(match page.find(&self.heap, key)? {
            Found::Right => Ok(page.right_to(&self.heap, Aim::to(key.bytes))?),
            Found::Absent => Err(None),
            Found::Pair(pair, _) => Err(Some(pair.value(&self.heap)?)),
        })
    }

    /// Reads all `keys` and reports the result for each.
    pub(super) fn read_many<'g>(
        &'g self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Fault> {
        let top = Page::load(&self.heap, self.top()?)?;
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            let mut walks = [Some(top); GROUP];
            let mut busy = keys.len();
            let mut steps = 0;
            while busy > 0 {
                steps += 1;
                if steps > MAX_SIBLINGS {
                    return Err(damaged(
                        "more than 100000 siblings: the list has a cycle",
                        top.cell,
                    ));
                }
                for ((i, key), walk) in keys.iter().enumerate().zip(&mut walks) {
                    let Some(page) = *walk else { continue };
                    *walk = match self.step(&SearchKey::new(key), page)? {
                        Ok(next) => {
                            prefetch_range(art::address(&self.heap, next.head), 64);
                            Some(next)
                        }
                        Err(value) => {
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
}

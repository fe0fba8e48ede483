//! DRAM state that belongs to a persistent object, such as an index's buffer to its root: all openings of the object
//! share it.
//!
//! I1 Each object has at most one attached value at a time, from its creation to the end of its drop.

use crate::Heap;
use crate::lock::lock;
use pmem::{Media, Offset};
use std::any::Any;
use std::sync::{Arc, Weak};

impl<M: Media> Heap<M> {
    /// Returns the value attached to the object at `at`, made if there is none; `None` if it is of another type. The
    /// value's drop must end with [`detach`](Heap::detach).
    ///
    /// While a value is being made, other calls of this function, of [`is_attached`](Heap::is_attached) and of `detach`
    /// wait, so `make` must not call them. While a value is being dropped, calls of this function for its object wait.
    ///
    /// # Errors
    ///
    /// Those of `make`; nothing is attached then.
    pub fn attach<T: Send + Sync + 'static, E>(
        &self,
        at: Offset,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Option<Arc<T>>, E> {
        let mut turn = 0;
        loop {
            let mut attached = lock(&self.inner.attached);
            match attached.get(&at).map(Weak::upgrade) {
                Some(Some(value)) => return Ok(value.downcast().ok()),
                // It is being dropped: its drop needs this lock to end.
                Some(None) => drop(attached),
                None => {
                    let value = Arc::new(make()?);
                    let weak: Weak<dyn Any + Send + Sync> = Arc::<T>::downgrade(&value);
                    attached.insert(at, weak);
                    return Ok(Some(value));
                }
            }
            self.media().wait(turn);
            turn = turn.saturating_add(1);
        }
    }

    /// Whether a value is [attached](Heap::attach) to the object at `at`. It still is during its drop.
    pub fn is_attached(&self, at: Offset) -> bool {
        lock(&self.inner.attached).contains_key(&at)
    }

    /// Ends what was [attached](Heap::attach) to the object at `at`.
    ///
    /// # Safety
    ///
    /// The caller is the drop of the attached value, and no thread or call of the value is running any more: a second
    /// value may be made now.
    pub unsafe fn detach(&self, at: Offset) {
        lock(&self.inner.attached).remove(&at);
    }
}

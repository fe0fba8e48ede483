//! The map that a checkpoint is walking. A checkpoint must not hold a map for long that is to be dropped.
//!
//! The walk and the drop alternate: the walk leaves the map after a batch, and continues when the drop has ended. By
//! then either the map is gone, and the log says so, or the drop was refused, and the walk continues to the map's end.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The map being walked, and the maps to be dropped.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The map that a checkpoint holds a handle to.
    held: Option<String>,
    /// The map that a checkpoint waits for. The checkpoint precedes later drops, so that their number cannot starve it.
    awaited: Option<String>,
    /// Maps that are being dropped, once per dropping thread.
    unwanted: Vec<String>,
}

impl Walked {
    /// Lets a checkpoint take a handle to a map for as long as the returned value lives. Waits while the map is being
    /// dropped.
    pub fn begin(self: &Arc<Self>, map: &str) -> Walk {
        let mut state = self.lock();
        state.awaited = Some(map.to_owned());
        let mut state = self.wait_while(state, |state| {
            state.unwanted.iter().any(|unwanted| unwanted == map)
        });
        state.held = state.awaited.take();
        self.changed.notify_all();
        Walk(self.clone())
    }

    /// Waits until no checkpoint holds this map, which is to be dropped: at most for two batches of a walk. Keeps
    /// checkpoints away from the map for as long as the returned value lives.
    pub fn keep_away(self: &Arc<Self>, map: &str) -> KeptAway {
        let mut state = self.wait_while(self.lock(), |state| state.awaited.as_deref() == Some(map));
        state.unwanted.push(map.to_owned());
        drop(self.wait_while(state, |state| state.held.as_deref() == Some(map)));
        KeptAway {
            walked: self.clone(),
            map: map.to_owned(),
        }
    }

    fn wait_while<'s>(
        &self,
        state: MutexGuard<'s, State>,
        condition: impl FnMut(&mut State) -> bool,
    ) -> MutexGuard<'s, State> {
        let waited = self.changed.wait_while(state, condition);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is one insert, removal or store.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Proof that a checkpoint may hold a map. Dropped after the handle.
#[derive(Debug)]
pub(crate) struct Walk(Arc<Walked>);

impl Walk {
    /// Returns whether the map is to be dropped, so that the walk must leave it until then.
    pub fn is_unwanted(&self) -> bool {
        let state = self.0.lock();
        state
            .held
            .as_ref()
            .is_some_and(|held| state.unwanted.contains(held))
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.0.lock().held = None;
        self.0.changed.notify_all();
    }
}

/// While this lives, no checkpoint begins with the map.
#[derive(Debug)]
pub(crate) struct KeptAway {
    walked: Arc<Walked>,
    map: String,
}

impl Drop for KeptAway {
    fn drop(&mut self) {
        let mut state = self.walked.lock();
        if let Some(at) = state.unwanted.iter().position(|map| *map == self.map) {
            state.unwanted.swap_remove(at);
        }
        drop(state);
        self.walked.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    /// A thread that drops a map makes the walk leave it and waits until it has; then the walk waits for the drop to
    /// end.
    #[test]
    fn walks_and_drops_take_turns() {
        let (walked, left, ended) = (
            Arc::new(Walked::default()),
            AtomicBool::new(false),
            AtomicBool::new(false),
        );
        let walk = walked.begin("a");
        assert!(!walk.is_unwanted());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let kept = walked.keep_away("a");
                assert!(left.load(SeqCst));
                drop(walked.begin("b"));
                ended.store(true, SeqCst);
                drop(kept);
            });
            while !walk.is_unwanted() {
                std::thread::yield_now();
            }
            left.store(true, SeqCst);
            drop(walk);
            let again = walked.begin("a");
            assert!(ended.load(SeqCst) && !again.is_unwanted());
        });
    }

    /// However many drops of a map are attempted, a walk gets its turn.
    #[test]
    fn drops_do_not_starve_walks() {
        let (walked, done) = (Arc::new(Walked::default()), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !done.load(SeqCst) {
                        drop(walked.keep_away("a"));
                    }
                });
            }
            for _ in 0..1000 {
                drop(walked.begin("a"));
            }
            done.store(true, SeqCst);
        });
    }
}

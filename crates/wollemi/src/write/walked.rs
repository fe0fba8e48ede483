//! Which map a checkpoint is walking, so that a map that is to be dropped is not held by it for long.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Where the walk is, and which maps are to be dropped.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The map that a checkpoint holds a handle to.
    held: Option<String>,
    /// Maps that are being dropped: no checkpoint begins with them.
    unwanted: HashSet<String>,
}

impl Walked {
    /// A checkpoint comes to a map: it may take a handle for as long as the value lives. `None` if it is to be dropped.
    pub fn begin(self: &Arc<Self>, map: &str) -> Option<Walk> {
        let mut state = self.lock();
        if state.unwanted.contains(map) {
            return None;
        }
        state.held = Some(map.to_owned());
        Some(Walk(self.clone()))
    }

    /// A map is to be dropped: waits until no checkpoint holds it, at most for one batch of a walk, and keeps
    /// checkpoints away for as long as the value lives.
    pub fn keep_away(self: &Arc<Self>, map: &str) -> KeptAway {
        let mut state = self.lock();
        state.unwanted.insert(map.to_owned());
        let held = |state: &mut State| state.held.as_deref() == Some(map);
        let state = self.changed.wait_while(state, held);
        drop(state.unwrap_or_else(PoisonError::into_inner));
        KeptAway {
            walked: self.clone(),
            map: map.to_owned(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is one insert, removal or store.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A checkpoint holds a map. To be dropped after the handle.
#[derive(Debug)]
pub(crate) struct Walk(Arc<Walked>);

impl Walk {
    /// Whether the map is to be dropped, and the walk to leave it.
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

/// No checkpoint begins with the map.
#[derive(Debug)]
pub(crate) struct KeptAway {
    walked: Arc<Walked>,
    map: String,
}

impl Drop for KeptAway {
    fn drop(&mut self) {
        self.walked.lock().unwanted.remove(&self.map);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    /// Whoever drops a map waits for the walk to leave it, and the walk is told to.
    #[test]
    fn a_drop_waits_for_the_walk() {
        let (walked, left) = (Arc::new(Walked::default()), AtomicBool::new(false));
        let walk = walked.begin("a").expect("wanted");
        assert!(!walk.is_unwanted());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let kept = walked.keep_away("a");
                assert!(left.load(SeqCst));
                assert!(walked.begin("a").is_none() && walked.begin("b").is_some());
                drop(kept);
            });
            while !walk.is_unwanted() {
                std::thread::yield_now();
            }
            left.store(true, SeqCst);
            drop(walk);
        });
        assert!(walked.begin("a").is_some());
    }
}

//! Who may write now: any number of writers of single keys, or one that needs all others to stand still.
//!
//! A writer counts itself in, in one of a few counters so that writers on different processors share no line, and looks
//! whether the gate is open; who closes the gate shuts it and then waits until all counters are zero. Readers do not
//! come by here.
//!
//! I1 While somebody holds [`Closed`], no [`Pass`] is held.
//! I2 A pass is held for one write, or for several in one call, none of which waits. Its holder waits for nothing that waits for guards: it is pinned, and so the heap
//!    does not let it wait for recovery. Hence whoever waits here, with a guard or without, waits for a bounded time.
//! I3 A gate whose closer has gone without finishing what it had begun stays shut for as long as the database is open.

use crossbeam_utils::CachePadded;
use index::Error;
use pmem::Media;
use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

const COUNTERS: usize = 16;

const OPEN: u8 = 0;
const CLOSED: u8 = 1;
const SHUT: u8 = 2;

/// Turns of waiting after which a thread sleeps between two looks.
const AWAKE: u32 = 256;

const NAP: Duration = Duration::from_micros(50);

/// The gate of a database.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    writers: [CachePadded<AtomicU64>; COUNTERS],
    state: AtomicU8,
}

/// Leave to write.
#[derive(Debug)]
pub(crate) struct Pass<'g>(&'g AtomicU64);

impl Drop for Pass<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// All others stand still.
#[derive(Debug)]
pub(crate) struct Closed<'g> {
    gate: &'g Gate,
    unfinished: Cell<bool>,
}

impl Closed<'_> {
    /// What now begins must be finished before anybody writes.
    pub fn begin(&self) {
        self.unfinished.set(true);
    }

    /// It is finished.
    pub fn finish(&self) {
        self.unfinished.set(false);
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        let state = if self.unfinished.get() { SHUT } else { OPEN };
        self.gate.state.store(state, SeqCst);
    }
}

impl Gate {
    /// Waits until the gate is open, and goes in.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`]
    #[inline]
    pub fn enter<M: Media>(&self, media: &M) -> Result<Pass<'_>, Error> {
        let counter = &*self.writers[counter()];
        // Both are sequentially consistent, as are the closer's store and its looks at the counters: either it sees the
        // writer counted, or the writer sees the gate closed.
        counter.fetch_add(1, SeqCst);
        let pass = Pass(counter);
        if self.state.load(SeqCst) == OPEN {
            return Ok(pass);
        }
        drop(pass);
        self.enter_later(counter, media)
    }

    #[cold]
    fn enter_later<'g, M: Media>(&'g self, counter: &'g AtomicU64, media: &M) -> Result<Pass<'g>, Error> {
        let mut turn = 0;
        loop {
            match self.state.load(SeqCst) {
                SHUT => return Err(Error::Unfinished),
                OPEN => {
                    counter.fetch_add(1, SeqCst);
                    let pass = Pass(counter);
                    if self.state.load(SeqCst) == OPEN {
                        return Ok(pass);
                    }
                }
                _ => {}
            }
            wait(&mut turn, media);
        }
    }

    /// Closes the gate, after whoever holds it closed, and waits until all writers are out.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`]
    pub fn close<M: Media>(&self, media: &M) -> Result<Closed<'_>, Error> {
        let mut turn = 0;
        while let Err(state) = self.state.compare_exchange(OPEN, CLOSED, SeqCst, SeqCst) {
            if state == SHUT {
                return Err(Error::Unfinished);
            }
            wait(&mut turn, media);
        }
        let closed = Closed {
            gate: self,
            unfinished: Cell::new(false),
        };
        let mut turn = 0;
        for counter in &self.writers {
            while counter.load(SeqCst) != 0 {
                wait(&mut turn, media);
            }
        }
        Ok(closed)
    }
}

fn wait<M: Media>(turn: &mut u32, media: &M) {
    media.wait(*turn);
    *turn = turn.saturating_add(1);
    if *turn > AWAKE && !M::TAKES_TURNS {
        std::thread::sleep(NAP);
    }
}

/// The counter of this thread.
#[inline]
fn counter() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: usize = NEXT.fetch_add(1, Relaxed) % COUNTERS;
    }
    // While a thread ends, any counter will do.
    MINE.try_with(|&mine| mine).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmem::Hardware;
    use std::sync::atomic::AtomicBool;

    /// With many writers and several closers, nobody is inside while the gate is closed, and all get through.
    #[test]
    fn nobody_is_inside_while_it_is_closed() -> Result<(), Error> {
        const EACH: u64 = 2000;
        let (gate, media) = (Gate::default(), Hardware::detect());
        let (inside, closed) = (AtomicU64::new(0), AtomicBool::new(false));
        let done = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let _pass = gate.enter(&media).expect("never shut");
                        inside.fetch_add(1, SeqCst);
                        assert!(!closed.load(SeqCst), "a writer beside a closer");
                        inside.fetch_sub(1, SeqCst);
                        done.fetch_add(1, SeqCst);
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..EACH / 10 {
                        let _closed = gate.close(&media).expect("never shut");
                        assert!(!closed.swap(true, SeqCst), "two closers");
                        assert_eq!(inside.load(SeqCst), 0, "a closer beside a writer");
                        std::thread::yield_now();
                        closed.store(false, SeqCst);
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 4 * EACH);
        Ok(())
    }

    /// Who goes without finishing what was begun, by an error or a panic, leaves the gate shut for all.
    #[test]
    fn what_is_unfinished_shuts_it() -> Result<(), Error> {
        let (gate, media) = (Gate::default(), Hardware::detect());
        let closed = gate.close(&media)?;
        closed.begin();
        closed.finish();
        drop(closed);
        drop(gate.enter(&media)?);
        let closed = gate.close(&media)?;
        closed.begin();
        drop(closed);
        assert!(matches!(gate.enter(&media), Err(Error::Unfinished)));
        assert!(matches!(gate.close(&media), Err(Error::Unfinished)));
        Ok(())
    }
}

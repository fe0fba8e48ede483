//! Admission of writers: any number of writers and committers, or one closer that needs all of them stopped.
//!
//! A writer increments one of a few counters, so that writers on different processors share no line, and then checks
//! whether the gate is open. A closer closes the gate, and then waits until all counters are zero. Readers do not use
//! the gate.
//!
//! The gate does not starve writers. A writer that finds it closed registers as waiting. At most [`PASSED_BY`] closers
//! in a row may overtake waiting writers; after that no closer closes the gate before all of these have entered. (With
//! a limit of one, each closing would wait for the scheduler to wake a writer.)
//!
//! I1 While a [`Closed`] is held, no [`Pass`] is.
//! I2 A pass is held for one write, for several in one call, or for one commit. Its holder waits only for
//! [stripes](super::stripes) and the slots of intents, whose holders have passes themselves, and for nothing that waits
//! for guards: it is pinned, so the heap does not let it wait for recovery. Hence a thread that waits here, with or
//! without a guard, waits for a bounded time.
//! I3 A gate that was [shut](Gate::shut), because a published commit could not be completed, stays shut as long as the
//! database is open.
//! I4 After a writer has registered as waiting, at most [`PASSED_BY`] closers close the gate before that writer enters,
//! and one more that had already checked for waiting writers.

use crossbeam_utils::CachePadded;
use index::Error;
use pmem::Media;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

const COUNTERS: usize = 16;

const OPEN: u8 = 0;
/// Bit: a closer holds the gate.
const CLOSED: u8 = 1;
/// Bit: the gate stays shut.
const SHUT: u8 = 2;

/// Maximum number of consecutive closings that may overtake waiting writers.
const PASSED_BY: u64 = 8;

/// Turns of waiting after which a thread sleeps between two checks.
const SPIN_TURNS: u32 = 256;

const NAP: Duration = Duration::from_micros(50);

/// The gate of a database.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    writers: [CachePadded<AtomicU64>; COUNTERS],
    state: AtomicU8,
    /// Writers that have found the gate closed and have not entered since.
    waiting: AtomicU64,
    /// Consecutive closings that have overtaken waiting writers. Written only by the thread that holds the gate closed.
    passed_by: AtomicU64,
}

/// Permission to write: one count in a counter, until it is dropped.
#[derive(Debug)]
pub(crate) struct Pass<'g>(&'g AtomicU64);

impl<'g> Pass<'g> {
    fn count(counter: &'g AtomicU64) -> Pass<'g> {
        counter.fetch_add(1, SeqCst);
        Pass(counter)
    }
}

impl Drop for Pass<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Proof that all writers are stopped.
#[derive(Debug)]
pub(crate) struct Closed<'g>(&'g Gate);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_and(!CLOSED, SeqCst);
    }
}

impl Gate {
    /// Waits until the gate is open, and enters.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`]
    #[inline]
    pub fn enter<M: Media>(&self, media: &M) -> Result<Pass<'_>, Error> {
        let counter = &*self.writers[counter()];
        if let Some(pass) = self.try_enter(counter, || ()) {
            return Ok(pass);
        }
        self.enter_later(counter, media)
    }

    /// Registers as waiting, and enters when the gate is open.
    #[cold]
    fn enter_later<'g, M: Media>(&'g self, counter: &'g AtomicU64, media: &M) -> Result<Pass<'g>, Error> {
        let _waiting = Pass::count(&self.waiting);
        let mut turn = 0;
        loop {
            match self.state.load(SeqCst) {
                state if state & SHUT != 0 => return Err(Error::Unfinished),
                OPEN => {
                    if let Some(pass) = self.try_enter(counter, || ()) {
                        return Ok(pass);
                    }
                }
                _ => {}
            }
            wait(&mut turn, media);
        }
    }

    /// Enters if the gate is open. Tests act at `between`.
    #[inline]
    fn try_enter<'g>(&self, counter: &'g AtomicU64, between: impl FnOnce()) -> Option<Pass<'g>> {
        // The count and the check are sequentially consistent, as are the closer's store and its reads of the counters:
        // either the closer sees the writer counted, or the writer sees the gate closed.
        let pass = Pass::count(counter);
        between();
        (self.state.load(SeqCst) == OPEN).then_some(pass)
    }

    /// Shuts the gate for as long as the database is open: a published commit cannot be completed, and no other write
    /// may precede its changes. Called by the holder of a pass.
    pub fn shut(&self) {
        self.state.fetch_or(SHUT, SeqCst);
    }

    /// Returns an error if the gate stays shut.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`]
    pub fn refuse_if_shut(&self) -> Result<(), Error> {
        match self.state.load(SeqCst) & SHUT {
            0 => Ok(()),
            _ => Err(Error::Unfinished),
        }
    }

    /// Returns whether a closer may close the gate: no writer waits, or the waiting ones were not overtaken too often.
    fn may_be_closed(&self) -> bool {
        self.waiting.load(SeqCst) == 0 || self.passed_by.load(SeqCst) < PASSED_BY
    }

    /// Closes the gate, after the closer that holds it and the writers that must enter first, and waits until all
    /// writers have left.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`]
    pub fn close<M: Media>(&self, media: &M) -> Result<Closed<'_>, Error> {
        let mut turn = 0;
        loop {
            match self.state.load(SeqCst) {
                state if state & SHUT != 0 => return Err(Error::Unfinished),
                // Each waiting writer can enter now, and no other begins to wait while the gate is open.
                OPEN if self.may_be_closed() => {
                    if self.state.compare_exchange(OPEN, CLOSED, SeqCst, SeqCst).is_ok() {
                        break;
                    }
                }
                _ => wait(&mut turn, media),
            }
        }
        let passed_by = match self.waiting.load(SeqCst) {
            0 => 0,
            _ => self.passed_by.load(SeqCst) + 1,
        };
        self.passed_by.store(passed_by, SeqCst);
        let closed = Closed(self);
        let mut turn = 0;
        for counter in &self.writers {
            while counter.load(SeqCst) != 0 {
                wait(&mut turn, media);
            }
        }
        // A committer that was inside may have shut it.
        self.refuse_if_shut()?;
        Ok(closed)
    }
}

/// One turn of waiting for another thread.
pub(crate) fn wait<M: Media>(turn: &mut u32, media: &M) {
    media.wait(*turn);
    *turn = turn.saturating_add(1);
    if *turn > SPIN_TURNS && !M::TAKES_TURNS {
        std::thread::sleep(NAP);
    }
}

/// Returns the index of this thread's counter.
#[inline]
fn counter() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: usize = NEXT.fetch_add(1, Relaxed) % COUNTERS;
    }
    // While a thread exits, any counter will do.
    MINE.try_with(|&mine| mine).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmem::Hardware;
    use std::sync::atomic::AtomicBool;

    /// With many writers and several closers, no writer is inside while the gate is closed, and all of them finish.
    #[test]
    fn no_writer_is_inside_while_it_is_closed() -> Result<(), Error> {
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
                        assert!(!closed.load(SeqCst), "a writer together with a closer");
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
                        assert_eq!(inside.load(SeqCst), 0, "a closer together with a writer");
                        std::thread::yield_now();
                        closed.store(false, SeqCst);
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 4 * EACH);
        Ok(())
    }

    /// A closer that arrives between a writer's two steps either waits for the writer or keeps it out.
    #[test]
    fn a_closer_amid_an_entry_keeps_the_writer_out() {
        let (gate, media) = (&Gate::default(), &Hardware::detect());
        let done = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let pass = gate.try_enter(&gate.writers[0], || {
                scope.spawn(|| {
                    let closed = gate.close(media).expect("never shut");
                    while !done.load(SeqCst) {
                        std::thread::yield_now();
                    }
                    drop(closed);
                });
                while gate.state.load(SeqCst) == OPEN {
                    std::thread::yield_now();
                }
                // Time for a closer that does not see the writer to finish.
                std::thread::sleep(Duration::from_millis(20));
            });
            let kept_out = pass.is_none();
            drop(pass);
            done.store(true, SeqCst);
            assert!(kept_out, "the writer is inside together with a closer");
        });
    }

    /// Closers overtake waiting writers a limited number of times. Then the gate stays open until they have entered.
    #[test]
    fn waiting_writers_are_passed_by_a_number_of_times() -> Result<(), Error> {
        let (gate, media) = (&Gate::default(), &Hardware::detect());
        let waiting = Pass::count(&gate.waiting);
        for _ in 0..PASSED_BY {
            drop(gate.close(media)?);
        }
        let (calls, closed) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let closer = scope.spawn(|| {
                calls.store(true, SeqCst);
                let done = gate.close(media).map(drop);
                closed.store(true, SeqCst);
                done
            });
            for turn in 0..10_000 {
                assert!(
                    !closed.load(SeqCst),
                    "closed after {turn} closings, although a writer waits"
                );
                assert_eq!(gate.state.load(SeqCst), OPEN);
                if !calls.load(SeqCst) || turn % 1000 == 0 {
                    std::thread::sleep(NAP);
                }
            }
            // Like the writer: enters, no longer waits, leaves.
            let pass = Pass::count(&gate.writers[0]);
            drop(waiting);
            drop(pass);
            closer.join().expect("no panic")
        })?;
        assert_eq!(gate.passed_by.load(SeqCst), 0);
        Ok(())
    }

    /// A gate shut by a thread inside stays shut for all threads, including a closer that waits for that thread.
    #[test]
    fn what_is_unfinished_shuts_it() -> Result<(), Error> {
        let (gate, media) = (&Gate::default(), &Hardware::detect());
        let pass = gate.enter(media)?;
        std::thread::scope(|scope| {
            let closer = scope.spawn(|| gate.close(media).map(drop));
            while gate.state.load(SeqCst) == OPEN {
                std::thread::yield_now();
            }
            gate.shut();
            drop(pass);
            let closed = closer.join().expect("no panic");
            assert!(matches!(closed, Err(Error::Unfinished)));
        });
        assert!(matches!(gate.enter(media), Err(Error::Unfinished)));
        assert!(matches!(gate.close(media), Err(Error::Unfinished)));
        Ok(())
    }
}

//! Admission of writers: any number of writers and committers, or one closer that needs all of them stopped.
//!
//! A writer counts itself in, in one of a few counters so that writers on different processors share no line, and looks
//! whether the gate is open. A closer closes the gate, and then waits until all counters are zero. Readers do not come
//! by here.
//!
//! The gate does not leave writers out for good. A writer that finds it closed says that it waits. Closers pass by
//! waiting writers [`PASSED_BY`] times; then none closes the gate before all of these are in. (Were it once, each
//! closing would wait for the scheduler to wake a writer.)
//!
//! I1 While a [`Closed`] is held, no [`Pass`] is.
//! I2 A pass is held for one write, for several in one call, or for one commit. Its holder waits for nothing but
//!    [stripes](super::stripes) and the slots of intents, whose holders have passes themselves, and for nothing that
//!    waits for guards: it is pinned, and so the heap does not let it wait for recovery. Hence a thread that waits
//!    here, with a guard or without, waits for a bounded time.
//! I3 A gate that was [shut](Gate::shut), since a commit was published and could not be finished, stays shut for as
//!    long as the database is open.
//! I4 From the moment at which a writer has said that it waits, at most [`PASSED_BY`] closers close the gate before
//!    that writer passes, and one more that had already looked for waiting writers.

use crossbeam_utils::CachePadded;
use index::Error;
use pmem::Media;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

const COUNTERS: usize = 16;

const OPEN: u8 = 0;
/// A bit: a closer holds the gate.
const CLOSED: u8 = 1;
/// A bit: the gate stays shut.
const SHUT: u8 = 2;

/// Closings in a row that waiting writers may have to stand by.
const PASSED_BY: u64 = 8;

/// Turns of waiting after which a thread sleeps between two looks.
const AWAKE: u32 = 256;

const NAP: Duration = Duration::from_micros(50);

/// The gate of a database.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    writers: [CachePadded<AtomicU64>; COUNTERS],
    state: AtomicU8,
    /// Writers that have found the gate closed and have not passed since.
    waiting: AtomicU64,
    /// Closings since no writer was waiting. Only the thread that holds the gate closed writes it.
    passed_by: AtomicU64,
}

/// Leave to write: one count in a counter, until it is dropped.
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

/// All writers stand still.
#[derive(Debug)]
pub(crate) struct Closed<'g>(&'g Gate);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_and(!CLOSED, SeqCst);
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
        if let Some(pass) = self.try_enter(counter, || ()) {
            return Ok(pass);
        }
        self.enter_later(counter, media)
    }

    /// Says that the writer waits, and goes in when the gate is open.
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

    /// Goes in, if the gate is open. A test has others act where `between` is called.
    #[inline]
    fn try_enter<'g>(&self, counter: &'g AtomicU64, between: impl FnOnce()) -> Option<Pass<'g>> {
        // The count and the look are sequentially consistent, as are the closer's store and its looks at the counters:
        // either the closer sees the writer counted, or the writer sees the gate closed.
        let pass = Pass::count(counter);
        between();
        (self.state.load(SeqCst) == OPEN).then_some(pass)
    }

    /// Keeps the gate shut for as long as the database is open: a commit was published and cannot be finished, and no
    /// other write may come before its changes. Called by a holder of a pass.
    pub fn shut(&self) {
        self.state.fetch_or(SHUT, SeqCst);
    }

    /// Whether the gate stays shut.
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

    /// Whether a closer may close the gate: no writer waits, or those that do have not been passed by too often.
    fn may_be_closed(&self) -> bool {
        self.waiting.load(SeqCst) == 0 || self.passed_by.load(SeqCst) < PASSED_BY
    }

    /// Closes the gate, after the closer that holds it and the writers that must go in first, and waits until all
    /// writers are out.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`]
    pub fn close<M: Media>(&self, media: &M) -> Result<Closed<'_>, Error> {
        let mut turn = 0;
        loop {
            match self.state.load(SeqCst) {
                state if state & SHUT != 0 => return Err(Error::Unfinished),
                // Each writer that waits can go in now, and no other begins to wait while the gate is open.
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

/// A turn of waiting for another thread.
pub(crate) fn wait<M: Media>(turn: &mut u32, media: &M) {
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

    /// With many writers and several closers, no writer is inside while the gate is closed, and all get through.
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

    /// A closer that comes between a writer's two steps either waits for the writer or keeps it out.
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
                // Time in which a closer that does not see the writer comes through.
                std::thread::sleep(Duration::from_millis(20));
            });
            let kept_out = pass.is_none();
            drop(pass);
            done.store(true, SeqCst);
            assert!(kept_out, "the writer is in beside a closer");
        });
    }

    /// Writers that wait are passed by a number of times. Then the gate stays open until they are in.
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
                    "closed after {turn} turns, though a writer waits"
                );
                assert_eq!(gate.state.load(SeqCst), OPEN);
                if !calls.load(SeqCst) || turn % 1000 == 0 {
                    std::thread::sleep(NAP);
                }
            }
            // As the writer does: in, no longer waiting, out again.
            let pass = Pass::count(&gate.writers[0]);
            drop(waiting);
            drop(pass);
            closer.join().expect("no panic")
        })?;
        assert_eq!(gate.passed_by.load(SeqCst), 0);
        Ok(())
    }

    /// A gate that was shut by a thread inside stays shut for all, for a closer that waits for that thread, too.
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

//! Who may write now: any number of writers of single keys, or one closer that needs all writers to stand still.
//!
//! A writer counts itself in, in one of a few counters so that writers on different processors share no line, and looks
//! whether the gate is open. A closer takes a ticket, waits for its turn, shuts the gate, and waits until all counters
//! are zero. Readers do not come by here.
//!
//! The gate is fair in both directions. A writer that finds it closed says that it waits, and no closer shuts the gate
//! while a writer waits before an open one. So writers and closers alternate where both are many.
//!
//! ```text
//! state:  2n     open, after n closings; the closer with ticket n is next
//!         2n+1   the closer with ticket n holds it closed, or waits for the last writers to leave
//!         MAX    shut for good
//! ```
//!
//! I1 While a [`Closed`] is held, no [`Pass`] is.
//! I2 A pass is held for one write, or for several in one call, none of which waits. Its holder waits for nothing that waits for guards: it is pinned, and so the heap
//!    does not let it wait for recovery. Hence a thread that waits here, with a guard or without, waits for a bounded time.
//! I3 A gate whose closer has gone without finishing what it had begun stays shut for as long as the database is open.
//! I4 From the moment at which a writer has said that it waits, at most one closer shuts the gate before that writer
//!    passes: one that had already looked for waiting writers. A closer that holds the gate at that moment is not
//!    counted.
//! I5 Closers shut the gate in the order of their tickets. Between two of them pass the writers that waited for the
//!    first, and those that come while the gate is open.

use crossbeam_utils::CachePadded;
use index::Error;
use pmem::Media;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

const COUNTERS: usize = 16;

/// The state of a gate that stays shut.
const SHUT: u64 = u64::MAX;

/// Turns of waiting after which a thread sleeps between two looks.
const AWAKE: u32 = 256;

const NAP: Duration = Duration::from_micros(50);

/// The gate of a database.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    writers: [CachePadded<AtomicU64>; COUNTERS],
    state: AtomicU64,
    /// The ticket of the next closer.
    tickets: AtomicU64,
    /// Writers that have found the gate closed and have not passed since.
    waiting: AtomicU64,
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
pub(crate) struct Closed<'g> {
    gate: &'g Gate,
    ticket: u64,
    unfinished: Cell<bool>,
}

impl Closed<'_> {
    /// What now begins must be finished before any other write.
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
        let state = if self.unfinished.get() {
            SHUT
        } else {
            open_for(self.ticket + 1)
        };
        self.gate.state.store(state, SeqCst);
    }
}

/// The state in which the closer with this ticket is next.
fn open_for(ticket: u64) -> u64 {
    2 * ticket
}

fn is_open(state: u64) -> bool {
    state.is_multiple_of(2)
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
        // The count and the look are sequentially consistent, as are the closer's store and its looks at the counters:
        // either the closer sees the writer counted, or the writer sees the gate closed.
        let pass = Pass::count(counter);
        if is_open(self.state.load(SeqCst)) {
            return Ok(pass);
        }
        drop(pass);
        self.enter_later(counter, media).map(|(pass, _)| pass)
    }

    /// Says that the writer waits, and goes in when the gate is open. Returns also how many closers have shut the gate
    /// since the writer said so.
    #[cold]
    fn enter_later<'g, M: Media>(
        &'g self,
        counter: &'g AtomicU64,
        media: &M,
    ) -> Result<(Pass<'g>, u64), Error> {
        let _waiting = Pass::count(&self.waiting);
        let first = self.state.load(SeqCst);
        let mut turn = 0;
        loop {
            match self.state.load(SeqCst) {
                SHUT => return Err(Error::Unfinished),
                state if is_open(state) => {
                    let pass = Pass::count(counter);
                    let state = self.state.load(SeqCst);
                    if is_open(state) {
                        return Ok((pass, closings(state) - closings(first)));
                    }
                }
                _ => {}
            }
            wait(&mut turn, media);
        }
    }

    /// Closes the gate, when the closers that came before have gone and no writer waits, and waits until all writers are
    /// out.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`]
    pub fn close<M: Media>(&self, media: &M) -> Result<Closed<'_>, Error> {
        let ticket = self.tickets.fetch_add(1, SeqCst);
        let mut turn = 0;
        loop {
            match self.state.load(SeqCst) {
                SHUT => return Err(Error::Unfinished),
                // Each writer that waits goes in now, and no other begins to wait while the gate is open.
                state if state == open_for(ticket) && self.waiting.load(SeqCst) == 0 => break,
                _ => wait(&mut turn, media),
            }
        }
        // Only the closer whose turn it is changes the state.
        self.state.store(open_for(ticket) + 1, SeqCst);
        let closed = Closed {
            gate: self,
            ticket,
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

/// How many closers have shut the gate until this state.
fn closings(state: u64) -> u64 {
    state.div_ceil(2)
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

    /// A writer that waits passes after at most one further closing, and closers shut the gate in the order in which they
    /// came, however many of both there are.
    #[test]
    fn waiting_writers_and_closers_take_turns() -> Result<(), Error> {
        const CLOSINGS: u64 = 600;
        let (gate, media) = (Gate::default(), Hardware::detect());
        let left = AtomicU64::new(CLOSINGS);
        let ended = AtomicBool::new(false);
        let most = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let closers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        while left
                            .fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1))
                            .is_ok()
                        {
                            let closed = gate.close(&media).expect("never shut");
                            assert_eq!(gate.state.load(SeqCst), open_for(closed.ticket) + 1);
                        }
                    })
                })
                .collect();
            for _ in 0..2 {
                scope.spawn(|| {
                    while !ended.load(SeqCst) {
                        let (_pass, met) = gate.enter_later(&gate.writers[0], &media).expect("never shut");
                        most.fetch_max(met, SeqCst);
                    }
                });
            }
            let ends: Vec<_> = closers.into_iter().map(|closer| closer.join()).collect();
            ended.store(true, SeqCst);
            assert!(ends.iter().all(Result::is_ok), "a closer panics");
        });
        assert!(
            most.load(SeqCst) <= 1,
            "a writer that waited met {most:?} closings"
        );
        assert_eq!(closings(gate.state.load(SeqCst)), CLOSINGS);
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

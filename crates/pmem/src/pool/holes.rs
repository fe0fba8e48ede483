//! Space for which a pool's file has no blocks.
//!
//! The heap gives whole unneeded pages back to the file system by punching holes into the file. They get blocks again
//! before they are written: on a full file system a store into a hole would raise a signal. Nothing persistent
//! records where holes are; an opening asks the file system.
//!
//! I1 Every page without blocks is recorded here, from before it loses them until after it has some again.
//! I2 The pages of a call belong to its caller alone, so that file system calls for one page are ordered. No lock is
//!    held across them: they may take long, and other threads ask meanwhile.

use super::ErrorKind;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The holes of a pool.
#[derive(Debug, Default)]
pub(super) struct Holes {
    all: Mutex<Places>,
    /// Those of all, for readers without the lock.
    bytes: AtomicU64,
    /// The file system has failed to punch a hole.
    failed: AtomicBool,
}

/// Places in a file, which neither overlap nor touch.
#[derive(Debug, Default)]
struct Places {
    /// Start and end of each.
    ends: BTreeMap<u64, u64>,
    /// Bytes of all.
    bytes: u64,
}

impl Holes {
    /// The holes of a file, given in order.
    pub(super) fn new(places: Vec<Range<u64>>) -> Holes {
        let holes = Holes::default();
        let mut all = holes.lock();
        places.into_iter().for_each(|place| all.add(place));
        holes.publish_bytes(&all);
        drop(all);
        holes
    }

    // A panic leaves at least the existing holes.
    fn lock(&self) -> MutexGuard<'_, Places> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish_bytes(&self, all: &Places) {
        self.bytes.store(all.bytes, Ordering::Relaxed);
    }

    /// Bytes without blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the file system has failed to punch a hole.
    pub(super) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Whether all of these bytes have blocks.
    pub(super) fn none_in(&self, place: &Range<u64>) -> bool {
        self.bytes() == 0 || self.lock().overlapping(place).next().is_none()
    }

    /// Whether none of these bytes has blocks.
    pub(super) fn all_of(&self, place: &Range<u64>) -> bool {
        let all = self.lock();
        all.overlapping(place)
            .any(|hole| hole.start <= place.start && place.end <= hole.end)
    }

    /// Gives back the blocks of these bytes, which belong to the caller alone, by calling `punch`, which returns
    /// whether the file system can punch holes. Returns how many of the bytes had blocks; zero if the file system
    /// cannot.
    pub(super) fn punch(
        &self,
        place: Range<u64>,
        punch: impl FnOnce() -> Result<bool, ErrorKind>,
    ) -> Result<u64, ErrorKind> {
        let mut all = self.lock();
        let before: Vec<_> = all.overlapping(&place).collect();
        let had_none = before
            .iter()
            .map(|hole| within(hole, &place))
            .map(|hole| hole.end - hole.start);
        let given = place.end - place.start - had_none.sum::<u64>();
        all.add(place.clone());
        self.publish_bytes(&all);
        drop(all);
        let done = punch();
        if !matches!(done, Ok(true)) {
            self.failed.store(true, Ordering::Relaxed);
        }
        if let Ok(false) = done {
            let mut all = self.lock();
            all.remove(&place);
            before.iter().for_each(|hole| all.add(within(hole, &place)));
            self.publish_bytes(&all);
            return Ok(0);
        }
        // After an error, some may have been punched.
        done.map(|_| given)
    }

    /// Gives blocks to those of these bytes, which belong to the caller alone, that have none, by calling `fill`.
    pub(super) fn fill(
        &self,
        place: Range<u64>,
        fill: impl FnOnce() -> Result<(), ErrorKind>,
    ) -> Result<(), ErrorKind> {
        if self.none_in(&place) {
            return Ok(());
        }
        fill()?;
        let mut all = self.lock();
        all.remove(&place);
        self.publish_bytes(&all);
        Ok(())
    }
}

/// The part of a hole that lies in an overlapping place.
fn within(hole: &Range<u64>, place: &Range<u64>) -> Range<u64> {
    hole.start.max(place.start)..hole.end.min(place.end)
}

impl Places {
    fn insert(&mut self, place: &Range<u64>) {
        self.ends.insert(place.start, place.end);
        self.bytes += place.end - place.start;
    }

    fn take(&mut self, place: &Range<u64>) {
        self.ends.remove(&place.start);
        self.bytes -= place.end - place.start;
    }

    /// Removes these bytes.
    fn remove(&mut self, place: &Range<u64>) {
        if place.is_empty() {
            return;
        }
        let others: Vec<_> = self.overlapping(place).collect();
        for other in others {
            self.take(&other);
            for left in [other.start..place.start, place.end..other.end] {
                if !left.is_empty() {
                    self.insert(&left);
                }
            }
        }
    }

    /// The places that overlap these bytes, the highest first.
    fn overlapping(&self, place: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<'_> {
        let start = place.start;
        self.ends
            .range(..place.end)
            .rev()
            .take_while(move |&(_, &to)| to > start)
            .map(|(&from, &to)| from..to)
    }

    /// Adds a place, and merges it with those that it overlaps or touches.
    fn add(&mut self, mut place: Range<u64>) {
        if place.is_empty() {
            return;
        }
        let wide = place.start.saturating_sub(1)..place.end.saturating_add(1);
        let others: Vec<_> = self.overlapping(&wide).collect();
        for other in others {
            self.take(&other);
            place = place.start.min(other.start)..place.end.max(other.end);
        }
        self.insert(&place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// While the file system punches a hole, which may take long, other threads request pages, and fill and punch
    /// others.
    #[test]
    fn nobody_waits_for_a_punch() {
        let holes = &Holes::new(vec![0..5, 100..200]);
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let given = holes.punch(10..20, || {
                scope.spawn(move || {
                    let answers = [holes.none_in(&(10..12)), holes.none_in(&(20..30))];
                    holes.fill(100..150, || Ok(())).expect("filled");
                    let punched = holes.punch(30..40, || Ok(true)).expect("punched");
                    // The receiver is gone if its wait timed out.
                    let _ = sender.send((answers, punched));
                });
                // Upper bound on the wait; beyond it the test counts as hung.
                let answer = receiver.recv_timeout(std::time::Duration::from_secs(60));
                assert_eq!(answer, Ok(([false, true], 10)), "another thread waits");
                Ok(true)
            });
            assert_eq!(given.expect("punched"), 10);
        });
        assert_eq!(holes.bytes(), 5 + 10 + 10 + 50);
    }

    /// Where the file system cannot punch, a hole stays one, and nothing else becomes one.
    #[test]
    fn a_hole_that_cannot_be_punched_is_none() {
        let holes = Holes::new(vec![0..15, 18..30]);
        assert_eq!(holes.punch(10..20, || Ok(false)).expect("no failure"), 0);
        assert!(holes.failed() && holes.none_in(&(15..18)));
        assert!(holes.all_of(&(0..15)) && holes.all_of(&(18..30)));
        assert_eq!(holes.bytes(), 27);
        assert_eq!(holes.punch(10..20, || Ok(true)).expect("no failure"), 3);
    }

    /// The list equals a set of bytes, in the fewest possible holes.
    #[test]
    fn holes_are_a_set_of_bytes() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = |limit: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % limit
        };
        for _ in 0..2000 {
            let (mut all, mut bytes) = (Places::default(), BTreeSet::new());
            for _ in 0..below(20) {
                let start = below(60);
                let place = start..start + below(12);
                if below(4) == 0 {
                    bytes.retain(|byte| !place.contains(byte));
                    all.remove(&place);
                } else {
                    bytes.extend(place.clone());
                    all.add(place);
                }
            }
            let noted: Vec<u64> = all.ends.iter().flat_map(|(&from, &to)| from..to).collect();
            assert_eq!(noted, bytes.iter().copied().collect::<Vec<_>>());
            assert_eq!(all.bytes, bytes.len() as u64);
            assert!(
                all.ends
                    .iter()
                    .zip(all.ends.iter().skip(1))
                    .all(|((_, end), (start, _))| end < start)
            );
            let start = below(60);
            let place = start..start + 1 + below(8);
            let any = place.clone().any(|byte| bytes.contains(&byte));
            assert_eq!(all.overlapping(&place).next().is_some(), any);
        }
    }
}

//! Stripes: versioned locks on keys. Writers of one key take turns by them, and transactions detect by them whether a
//! key has changed.
//!
//! ```text
//!  63                              1     0
//! +---------------------------------+--------+
//! | changes of its keys, in total   | locked |
//! +---------------------------------+--------+
//! ```
//!
//! The hashes of a map's name and of a key select the key's stripe; keys share stripes. A writer holds its key's stripe
//! from before the index's write until the write is durable and the watches have the event. Durable means here: at the
//! pool's own level. At level `disk` a writer waits for the log after it has released the stripe.
//!
//! I1 While a thread holds a stripe, no other thread changes one of its keys. The next version is stored after the
//! changes are durable.
//! I2 If a thread finds the same unlocked version before and after a read, the key had the value read for all of that
//! time.
//! I3 A thread that takes several stripes takes them in ascending order, and no other afterwards, so threads cannot
//! deadlock. It has a [pass](super::gate), and waits here only for holders of passes.
//! I4 The stripes of a published commit that cannot be completed stay locked. A thread that waits for a stripe checks
//! whether the gate is shut.

use crate::write::gate::{Gate, wait};
use index::Error;
use pmem::Media;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst};

/// Number of stripes: 32 KiB of words. Two in one cache line are rarely written at once.
pub(crate) const STRIPES: usize = 4096;

const LOCKED: u64 = 1;

/// Index of a stripe.
pub(crate) type StripeId = u16;

const _: () = assert!(STRIPES - 1 <= StripeId::MAX as usize && STRIPES.is_power_of_two());

/// The stripes of a database.
#[derive(Debug)]
pub(crate) struct Stripes(Box<[AtomicU64]>);

impl Default for Stripes {
    fn default() -> Stripes {
        Stripes((0..STRIPES).map(|_| AtomicU64::new(0)).collect())
    }
}

/// A stripe that this thread holds. Dropping it releases the stripe.
#[derive(Debug)]
pub(crate) struct Held<'s> {
    word: &'s AtomicU64,
    id: StripeId,
    version: u64,
    changed: bool,
}

impl Held<'_> {
    /// Records that one of its keys was changed.
    #[inline]
    pub fn changed(&mut self) {
        self.changed = true;
    }

    /// Records, for one of the stripes held, that one of its keys was changed.
    pub fn change(held: &mut [Held<'_>], id: StripeId) {
        if let Ok(at) = held.binary_search_by_key(&id, |held| held.id) {
            held[at].changed();
        }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        // After a panic it is unknown whether a key was changed.
        let changed = self.changed || std::thread::panicking();
        let version = self.version + if changed { 2 } else { 0 };
        self.word.store(version, Release);
    }
}

impl Stripes {
    /// Waits until the stripe is free, and takes it. The caller has a pass.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`]
    #[inline]
    pub fn lock<M: Media>(&self, id: StripeId, gate: &Gate, media: &M) -> Result<Held<'_>, Error> {
        match self.try_lock(id) {
            Some(held) => Ok(held),
            None => self.lock_later(id, gate, media),
        }
    }

    #[inline]
    fn try_lock(&self, id: StripeId) -> Option<Held<'_>> {
        let word = &self.0[usize::from(id)];
        let version = word.load(Relaxed);
        if version & LOCKED != 0 {
            return None;
        }
        word.compare_exchange(version, version | LOCKED, SeqCst, Relaxed)
            .ok()?;
        Some(Held {
            word,
            id,
            version,
            changed: false,
        })
    }

    #[cold]
    fn lock_later<M: Media>(&self, id: StripeId, gate: &Gate, media: &M) -> Result<Held<'_>, Error> {
        let mut turn = 0;
        loop {
            gate.refuse_if_shut()?;
            wait(&mut turn, media);
            if let Some(held) = self.try_lock(id) {
                return Ok(held);
            }
        }
    }

    /// Takes several stripes, given in any order, and each of them once; returns them in ascending order.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`]
    pub fn lock_all<M: Media>(
        &self,
        mut ids: Vec<StripeId>,
        gate: &Gate,
        media: &M,
    ) -> Result<Vec<Held<'_>>, Error> {
        ids.sort_unstable();
        ids.dedup();
        let mut held = Vec::with_capacity(ids.len());
        for id in ids {
            held.push(self.lock(id, gate, media)?);
        }
        Ok(held)
    }

    /// Returns the version of a stripe once it is unlocked. Values read from its keys later, and before the version is
    /// found [unchanged](Stripes::is_unchanged), were valid for all of that time.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`]
    pub fn version<M: Media>(&self, id: StripeId, gate: &Gate, media: &M) -> Result<u64, Error> {
        let mut turn = 0;
        loop {
            let version = self.0[usize::from(id)].load(SeqCst);
            if version & LOCKED == 0 {
                return Ok(version);
            }
            gate.refuse_if_shut()?;
            wait(&mut turn, media);
        }
    }

    /// Returns the version of a stripe; `None` while another thread holds it. The caller holds `held`.
    pub fn version_now(&self, id: StripeId, held: &[Held<'_>]) -> Option<u64> {
        match held.binary_search_by_key(&id, |held| held.id) {
            Ok(at) => Some(held[at].version),
            Err(_) => Some(self.0[usize::from(id)].load(SeqCst)).filter(|word| word & LOCKED == 0),
        }
    }

    /// Returns whether the stripe still has this version, so that none of its keys has been changed since, and no
    /// thread but the caller, which holds `held`, holds it.
    pub fn is_unchanged(&self, id: StripeId, version: u64, held: &[Held<'_>]) -> bool {
        self.version_now(id, held) == Some(version)
    }
}

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Multiplies to 128 bits and folds the halves.
#[inline]
fn mix(word: u64) -> u64 {
    let product = u128::from(word) * u128::from(MULTIPLIER);
    product as u64 ^ (product >> 64) as u64
}

/// Hashes some bytes; the result depends on the seed.
#[inline]
pub(crate) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut hash = seed ^ bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = mix(hash ^ u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(hash ^ u64::from_le_bytes(last) ^ MULTIPLIER)
}

/// Returns the stripe of a key, from the hash of its map's name.
#[inline]
pub(crate) fn stripe_of(map: u64, key: &[u8]) -> StripeId {
    (hash(map, key) % STRIPES as u64) as StripeId
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmem::Hardware;
    use std::sync::atomic::AtomicBool;

    /// A version counts changes, and while the stripe is held only its holder changes it.
    #[test]
    fn versions_count_changes() -> Result<(), Error> {
        let (stripes, gate, media) = (Stripes::default(), Gate::default(), Hardware::detect());
        let version = stripes.version(7, &gate, &media)?;
        drop(stripes.lock(7, &gate, &media)?);
        assert!(stripes.is_unchanged(7, version, &[]));
        let mut held = stripes.lock_all(vec![9, 7, 9], &gate, &media)?;
        assert_eq!(held.iter().map(|held| held.id).collect::<Vec<_>>(), [7, 9]);
        assert!(!stripes.is_unchanged(7, version, &[]) && stripes.is_unchanged(7, version, &held));
        held[0].changed();
        drop(held);
        assert!(!stripes.is_unchanged(7, version, &[]));
        assert!(stripes.is_unchanged(9, version, &[]));
        Ok(())
    }

    /// Threads that each take several stripes, in any order, exclude one another and all of them finish.
    #[test]
    fn several_are_taken_without_a_circle() {
        const EACH: u64 = 30_000;
        let (stripes, gate, media) = (Stripes::default(), Gate::default(), Hardware::detect());
        let inside: [AtomicBool; 8] = std::array::from_fn(|_| AtomicBool::new(false));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (stripes, gate, media, inside) = (&stripes, &gate, &media, &inside);
                scope.spawn(move || {
                    for i in 0..EACH {
                        let hash = hash(thread, &i.to_le_bytes());
                        let ids = vec![(hash % 8) as u16, (hash >> 8) as u16 % 8, (hash >> 16) as u16 % 8];
                        let mut held = stripes.lock_all(ids, gate, media).expect("never shut");
                        for held in &held {
                            assert!(!inside[usize::from(held.id)].swap(true, SeqCst));
                        }
                        for held in &mut held {
                            inside[usize::from(held.id)].store(false, SeqCst);
                            held.changed();
                        }
                    }
                });
            }
        });
        let versions = (0..8).map(|id| stripes.version(id, &gate, &media).expect("free") / 2);
        assert!(versions.sum::<u64>() >= 4 * EACH);
    }

    /// A stripe that stays locked blocks no writer once the gate is shut.
    #[test]
    fn nobody_waits_when_the_gate_is_shut() -> Result<(), Error> {
        let (stripes, gate, media) = (Stripes::default(), Gate::default(), Hardware::detect());
        std::mem::forget(stripes.lock(3, &gate, &media)?);
        gate.shut();
        assert!(matches!(stripes.lock(3, &gate, &media), Err(Error::Unfinished)));
        assert!(matches!(
            stripes.version(3, &gate, &media),
            Err(Error::Unfinished)
        ));
        Ok(())
    }
}

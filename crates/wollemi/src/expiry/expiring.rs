//! Maps whose entries expire.
//!
//! The format of a value in the underlying map:
//!
//! ```text
//! offset  size  field
//!      0     8  end: the millisecond since 1970 at which the entry is gone, little endian; 0: never
//!      8     …  value
//! ```
//!
//! I1 An expired entry is absent for every reader through [`Expiring`], whether or not it has been removed.
//! I2 Sweeps and pops remove it by an edit that checks the expiry time again, so a value written meanwhile stays.
//!
//! Not here: further operations on keys (`edits`), iteration (`iter`), the thread that sweeps (`sweeper`), and the
//! other modules of `expiry`.

use crate::{Durability, Entry, Error, Map, Swept};
use index::{Action, Edit};
use std::ops::Deref;
use std::time::{Duration, SystemTime};

const HEADER: usize = 8;

/// A [`Map`] in which each entry may have a *life*, after which it is absent.
///
/// The clock is the system's: setting it lengthens or shortens lives. Expiry times survive crashes, as values do. An
/// expired entry takes space until a write of its key or a [`Sweeper`](crate::Sweeper) removes it. The map is not
/// marked as expiring. Of a value that was not written through `Expiring`, the first eight bytes are taken for an
/// expiry time; a value that has fewer bytes is an error on read.
///
/// ```
/// use std::time::Duration;
///
/// let db = wollemi::Db::anonymous()?;
/// let sessions = wollemi::Expiring::new(db.map("sessions")?);
/// let _sweeper = sessions.sweeper(Duration::from_millis(10))?;
///
/// sessions.upsert("alice", "token", Some(Duration::from_secs(3600)))?;
/// sessions.upsert("bob", "token", Some(Duration::ZERO))?;
/// assert_eq!(sessions.get("alice")?, Some(b"token".to_vec()));
/// assert_eq!(sessions.get("bob")?, None);
/// assert!(sessions.insert("bob", "another", None)?); // never expires
///
/// // Batches and backups use the bytes of the underlying map:
/// let mut batch = db.batch();
/// let hour = Some(Duration::from_secs(3600));
/// batch.upsert(sessions.map(), "carol", sessions.bytes("token", hour));
/// assert!(batch.commit()?);
/// assert_eq!(sessions.get("carol")?, Some(b"token".to_vec()));
/// let bytes = sessions.map().get("carol")?.expect("just put");
/// assert_eq!(sessions.read(&bytes)?.expect("alive").0, b"token");
/// # Ok::<(), wollemi::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expiring {
    map: Map,
}

/// A value and its remaining life; `None`: it never expires.
pub type WithLife = (Vec<u8>, Option<Duration>);

/// Returns the milliseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "expiry times have to survive restarts of the machine"
)]
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Returns the expiry time of a life that begins now; 0 for `None`, a life without an end.
pub(super) fn end_of(life: Option<Duration>, now: u64) -> u64 {
    life.map_or(0, |life| {
        let millis = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
        now.saturating_add(millis).max(1)
    })
}

/// Returns the life that is left before an expiry time.
pub(super) fn life_of(end: u64, now: u64) -> Option<Duration> {
    (end != 0).then(|| Duration::from_millis(end.saturating_sub(now)))
}

/// Splits bytes into the expiry time and the value; `None` if the header is missing.
fn read(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (end, value) = bytes.split_first_chunk::<HEADER>()?;
    Some((u64::from_le_bytes(*end), value))
}

pub(super) fn is_over(end: u64, now: u64) -> bool {
    end != 0 && end <= now
}

/// An edit by a rule. The rule gets the value and its expiry time, if an entry exists, and fills the bytes to put.
struct RuleEdit<R> {
    rule: R,
    put: Vec<u8>,
    /// Whether the key has a value without an expiry header.
    foreign: bool,
}

impl<R: FnMut(Option<(u64, &[u8])>, &mut Vec<u8>) -> Action> Edit for RuleEdit<R> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        let found = current.map(read);
        self.foreign = matches!(found, Some(None));
        if self.foreign {
            return Action::Keep;
        }
        self.put.clear();
        (self.rule)(found.flatten(), &mut self.put)
    }

    fn value(&self) -> &[u8] {
        &self.put
    }
}

/// Returns an entry of the underlying map, which has a header, without it.
pub(super) fn without_header((key, mut bytes): Entry) -> Entry {
    bytes.drain(..HEADER);
    (key, bytes)
}

pub(super) fn fill(put: &mut Vec<u8>, end: u64, value: &[u8]) {
    put.extend_from_slice(&end.to_le_bytes());
    put.extend_from_slice(value);
}

/// Splits bytes of the map of this name into the expiry time and the value.
///
/// # Errors
///
/// [`Error::NotExpiring`]
pub(super) fn split<'b>(map: &str, bytes: &'b [u8]) -> Result<(u64, &'b [u8]), Error> {
    read(bytes).ok_or_else(|| Error::NotExpiring(map.to_owned()))
}

/// Decodes bytes of the map of this name; `None` if the value has expired.
///
/// # Errors
///
/// [`Error::NotExpiring`]
pub(super) fn read_alive(map: &str, bytes: &[u8]) -> Result<Option<WithLife>, Error> {
    let (end, value) = split(map, bytes)?;
    let now = now();
    Ok((!is_over(end, now)).then(|| (value.to_vec(), life_of(end, now))))
}

impl Expiring {
    /// Wraps a map that is empty, or that was written only through `Expiring`.
    pub fn new(map: Map) -> Expiring {
        Expiring { map }
    }

    /// Returns the underlying map.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Encodes a value, with its life from now on if given, as the underlying map stores it: for batches.
    pub fn bytes(&self, value: impl AsRef<[u8]>, life: Option<Duration>) -> Vec<u8> {
        let mut bytes = Vec::new();
        fill(&mut bytes, end_of(life, now()), value.as_ref());
        bytes
    }

    /// Decodes a value of the underlying map, as snapshots, watches and backups show it. Returns the value and its
    /// remaining life, or `None` if it has expired.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`]
    pub fn read(&self, bytes: &[u8]) -> Result<Option<WithLife>, Error> {
        read_alive(self.map.name(), bytes)
    }

    /// Decodes many values of the underlying map, without their lives.
    pub(super) fn values<B>(&self, found: Vec<Option<B>>) -> Result<Vec<Option<Vec<u8>>>, Error>
    where
        B: Deref<Target = [u8]>,
    {
        let read = found.into_iter().map(|bytes| match bytes {
            Some(bytes) => Ok(self.read(&bytes)?.map(|(value, _)| value)),
            None => Ok(None),
        });
        read.collect()
    }

    /// Returns whether a value of the underlying map has not expired.
    pub(super) fn is_alive(&self, bytes: &[u8]) -> Result<bool, Error> {
        let (end, _) = split(self.map.name(), bytes)?;
        Ok(!is_over(end, now()))
    }

    pub(super) fn change(
        &self,
        key: &[u8],
        rule: impl FnMut(Option<(u64, &[u8])>, &mut Vec<u8>) -> Action,
    ) -> Result<Action, Error> {
        let mut change = RuleEdit {
            rule,
            put: Vec::new(),
            foreign: false,
        };
        let action = self.map.edit(key, &mut change)?;
        if change.foreign {
            return Err(Error::NotExpiring(self.map.name().to_owned()));
        }
        Ok(action)
    }

    /// Returns a copy of the value of a live key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.get_with_life(key)?.map(|(value, _)| value))
    }

    /// Returns a copy of the value of a live key, and its remaining life; `None`: it never expires.
    pub fn get_with_life(&self, key: impl AsRef<[u8]>) -> Result<Option<WithLife>, Error> {
        let guard = heap::pin();
        match self.map.index.get(key.as_ref(), &guard)? {
            Some(bytes) => self.read(&bytes),
            None => Ok(None),
        }
    }

    /// Sets the key's value and, if given, its life.
    pub fn upsert(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        life: Option<Duration>,
    ) -> Result<(), Error> {
        self.map.upsert(key, self.bytes(value, life))
    }

    /// Adds the key unless it is alive; returns `false` if it is.
    pub fn insert(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        life: Option<Duration>,
    ) -> Result<bool, Error> {
        let (value, now) = (value.as_ref(), now());
        let action = self.change(key.as_ref(), |found, put| match found {
            Some((end, _)) if !is_over(end, now) => Action::Keep,
            _ => {
                fill(put, end_of(life, now), value);
                Action::Put
            }
        })?;
        Ok(action == Action::Put)
    }

    /// Replaces the life of a live key, from now on, or makes it permanent; returns `false` if the key is not alive.
    pub fn touch(&self, key: impl AsRef<[u8]>, life: Option<Duration>) -> Result<bool, Error> {
        let action = self.change(key.as_ref(), |found, put| {
            // Read after the wait for the key: the entry may expire during the wait, and other readers see that.
            let now = now();
            match found {
                Some((end, value)) if !is_over(end, now) => {
                    fill(put, end_of(life, now), value);
                    Action::Put
                }
                _ => Action::Keep,
            }
        })?;
        Ok(action == Action::Put)
    }

    /// Removes the key; returns `false` if it was not alive.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let (now, mut alive) = (now(), false);
        self.change(key.as_ref(), |found, _| {
            alive = found.is_some_and(|(end, _)| !is_over(end, now));
            Action::Remove
        })?;
        Ok(alive)
    }

    /// Returns a live entry without its header.
    pub(crate) fn alive(&self, entry: Result<Entry, Error>) -> Option<Result<Entry, Error>> {
        let alive = entry.and_then(|entry| Ok(self.is_alive(&entry.1)?.then(|| without_header(entry))));
        alive.transpose()
    }

    /// Removes the key if it has expired at this time; returns whether it was removed.
    pub(super) fn expire(&self, key: &[u8], now: u64) -> Result<bool, Error> {
        let action = self.change(key, |found, _| match found {
            Some((end, _)) if is_over(end, now) => Action::Remove,
            _ => Action::Keep,
        })?;
        Ok(action == Action::Remove)
    }

    /// Visits the next keys after `cursor`, at most `limit` (at least one), and removes the expired ones by
    /// [eventual](Durability::Eventual) writes. Holds its pin only while it visits. If it has seen fewer than `limit`
    /// keys, it has reached the end of the map and resets `cursor` to `None`, the beginning.
    ///
    /// # Errors
    ///
    /// If the pool is damaged and returns only some of these keys, the expired ones among them are removed first. The
    /// cursor is reset to the beginning, because continuing from its old position would fail again.
    pub fn sweep(&self, cursor: &mut Option<Vec<u8>>, limit: usize) -> Result<Swept, Error> {
        let now = now();
        let past = |_: &[u8], value: &[u8]| read(value).is_some_and(|(end, _)| is_over(end, now));
        // An expired entry is absent in any case, so the sweep does not wait until its removal is durable.
        let eventual = self.with_durability(Durability::Eventual);
        self.map
            .sweep(cursor, limit, past, |key| eventual.expire(key, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damaged::Damaged;

    /// A round of sweeps ends with an error, whatever the damage to the pool.
    #[test]
    fn keys_out_of_order_end_a_round() {
        let map = Expiring::new(Damaged::endless().map());
        let mut cursor = None;
        while map.sweep(&mut cursor, 2).is_ok() {}
    }

    /// Each round removes the expired entries before a damaged spot.
    #[test]
    fn a_damaged_spot_ends_a_round() {
        let torn = Damaged::torn(&[1, 0, 0, 0, 0, 0, 0, 0]);
        let removed = torn.removed.clone();
        let taken = || std::mem::take(&mut *removed.lock().expect("no panic"));
        let map = Expiring::new(torn.map());
        let mut cursor = None;
        for _ in 0..2 {
            assert_eq!(map.sweep(&mut cursor, 2).expect("sound so far").removed, 2);
            assert_eq!(taken(), [b"a", b"b"]);
            assert!(map.sweep(&mut cursor, 2).is_err());
            assert_eq!(taken(), [b"c"]);
        }
    }
}

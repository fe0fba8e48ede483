//! Watches of expiring maps.

use crate::expiry::expiring::{Expiring, WithLife, read_alive};
use crate::{Error, Event, Watch};
use std::time::Duration;

/// A stream of the changes of an [`Expiring`] map, from [`Expiring::watch`]. As an iterator it waits for the next
/// event, like a [`Watch`], and ends when the last handle to the map's database is dropped.
///
/// An event has the value and the life that remains when the event is taken from the watch; a value that has expired by
/// then is `None`, as if it had been removed. An entry that expires sends no event until it is removed. A value without
/// an expiry header is an error, after which the watch continues.
#[derive(Debug)]
pub struct ExpiringWatch {
    /// The map's name. A handle to the map would keep the database open, and the watch would never end.
    map: String,
    watch: Watch,
}

impl Expiring {
    /// Returns a stream of the changes to keys that start with `prefix`, like [`Map::watch`](crate::Map::watch).
    ///
    /// ```
    /// use std::time::Duration;
    /// use wollemi::Event;
    ///
    /// let sessions = wollemi::Expiring::new(wollemi::Db::anonymous()?.map("sessions")?);
    /// let mut watch = sessions.watch("", 100)?;
    /// sessions.upsert("alice", "token", None)?;
    /// let event = watch.next().expect("the database is open")?;
    /// let value = Some((b"token".to_vec(), None));
    /// assert_eq!(event, Event::Changed { key: b"alice".to_vec(), value });
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Map::watch`](crate::Map::watch).
    pub fn watch(&self, prefix: impl AsRef<[u8]>, capacity: usize) -> Result<ExpiringWatch, Error> {
        Ok(ExpiringWatch {
            map: self.map().name().to_owned(),
            watch: self.map().watch(prefix, capacity)?,
        })
    }
}

impl ExpiringWatch {
    /// Returns the next event, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`]; the next call returns the next event.
    pub fn try_next(&mut self) -> Result<Option<Event<Vec<u8>, WithLife>>, Error> {
        let event = self.watch.try_next();
        event.map(|event| self.read(event)).transpose()
    }

    /// Waits at most this time for the next event. Returns `None` if there was none.
    ///
    /// # Errors
    ///
    /// Those of [`try_next`](ExpiringWatch::try_next).
    pub fn next_within(&mut self, patience: Duration) -> Result<Option<Event<Vec<u8>, WithLife>>, Error> {
        let event = self.watch.next_within(patience);
        event.map(|event| self.read(event)).transpose()
    }

    fn read(&self, event: Event) -> Result<Event<Vec<u8>, WithLife>, Error> {
        Ok(match event {
            Event::Changed { key, value } => Event::Changed {
                key,
                value: match value {
                    Some(bytes) => read_alive(&self.map, &bytes)?,
                    None => None,
                },
            },
            Event::Missed(count) => Event::Missed(count),
        })
    }
}

impl Iterator for ExpiringWatch {
    type Item = Result<Event<Vec<u8>, WithLife>, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        self.watch.next().map(|event| self.read(event))
    }
}

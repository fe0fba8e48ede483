//! Calls of an expiring map that only this thread uses. The default index holds it.

use super::typed::clear;
use super::unordered::not_refused;
use super::{HOURS, Worker, Wrong, same};
use std::time::Duration;
use wollemi::{Entry, Error, Event, Expiring, WithLife};

const OVER: Option<Duration> = Some(Duration::ZERO);

/// Returns the value, and whether it has a lifetime of at most [`HOURS`].
fn shown(found: Option<WithLife>) -> Option<(String, bool)> {
    let (value, life) = found?;
    let value = String::from_utf8_lossy(&value).into_owned();
    let is_longer = life.is_some_and(|life| life > HOURS);
    Some((value, life.is_some() && !is_longer))
}

fn alive(value: &str, has_life: bool) -> Option<(String, bool)> {
    Some((value.to_owned(), has_life))
}

fn text(entry: Option<Entry>) -> Option<String> {
    entry.map(|(key, value)| format!("{} {}", key.escape_ascii(), value.escape_ascii()))
}

fn texts<const N: usize>(entries: [&str; N]) -> [Option<String>; N] {
    entries.map(|entry| (!entry.is_empty()).then(|| entry.to_owned()))
}

impl Worker<'_> {
    /// Puts entries of which some have expired, and pops all. Leaves the map empty.
    pub(super) fn expiring(&mut self) -> Result<Option<Wrong>, Error> {
        let map = Expiring::new(self.db.map(&format!("expiring of {}", self.thread))?);
        clear(map.map())?;
        let hours = Some(HOURS);
        let entries = [
            ("a", "1", OVER),
            ("b", "2", hours),
            ("c", "3", OVER),
            ("d", "4", None),
            ("e", "5", hours),
            ("f", "6", OVER),
        ];
        let mut watch = map.watch("b", 10)?;
        let mut wrong = same("load", map.load(entries)?, 6).err();
        let event = match watch.try_next()? {
            Some(Event::Changed { value, .. }) => shown(value),
            _ => None,
        };
        wrong = wrong
            .or(same("watch", event, alive("2", true)).err())
            .or(self.expiring_in(&map)?);
        let snapshot = self.db.snapshot()?;
        if map.map().index_kind().is_ordered() {
            let popped = [
                map.pop_first()?,
                map.pop_last()?,
                map.pop_first()?,
                map.pop_last()?,
            ];
            let expected = texts(["b 2", "e 5", "d 4", ""]);
            wrong = wrong.or(same("pops", popped.map(text), expected).err()).or(same(
                "what pops have left",
                map.map().len()?,
                0,
            )
            .err());
        } else {
            wrong = wrong
                .or(not_refused("pop_first", map.pop_first()))
                .or(not_refused("pop_last", map.pop_last()));
            clear(map.map())?;
        }
        let view = map.view(&snapshot)?;
        let then = (view.len()?, shown(view.get_with_life("b")?), view.get("c")?);
        Ok(wrong.or(same("view", then, (3, alive("2", true), None)).err()))
    }

    /// Calls in a transaction that is dropped, of a map with the entries that [`expiring`](Worker::expiring) puts.
    fn expiring_in(&self, map: &Expiring) -> Result<Option<Wrong>, Error> {
        let mut tx = self.db.begin();
        let updated = [
            map.update_in(&mut tx, "a", "no", None)?,
            map.update_in(&mut tx, "b", "22", None)?,
        ];
        let touched = [
            map.touch_in(&mut tx, "c", None)?,
            map.touch_in(&mut tx, "d", Some(HOURS))?,
        ];
        let edited = map.edit_with_in(&mut tx, "e", |current| {
            current.map(|(value, left)| ([value, b"5"].concat(), left))
        })?;
        let found = map.multi_get_in(&tx, &["a", "b", "e"])?;
        let expected = [None, Some(b"22".to_vec()), Some(b"55".to_vec())];
        let wrong = same("update_in", updated, [false, true])
            .and(same("touch_in", touched, [false, true]))
            .and(same("edit_with_in", shown(edited), alive("55", true)))
            .and(same("multi_get_in", found, expected.to_vec()))
            .err();
        if !map.map().index_kind().is_ordered() {
            return Ok(wrong
                .or(not_refused("first_in", map.first_in(&tx)))
                .or(not_refused("last_in", map.last_in(&tx)))
                .or(not_refused("pop_first_in", map.pop_first_in(&mut tx)))
                .or(not_refused("pop_last_in", map.pop_last_in(&mut tx))));
        }
        let ends = [map.first_in(&tx)?, map.last_in(&tx)?];
        let popped = [
            map.pop_first_in(&mut tx)?,
            map.pop_last_in(&mut tx)?,
            map.pop_first_in(&mut tx)?,
            map.pop_last_in(&mut tx)?,
        ];
        let expected = texts(["b 22", "e 55", "d 4", ""]);
        Ok(wrong
            .or(same("ends in a transaction", ends.map(text), texts(["b 22", "e 55"])).err())
            .or(same("pops in a transaction", popped.map(text), expected).err()))
    }
}

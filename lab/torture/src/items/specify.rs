//! The sequential specification of the operations on items.

use super::{Answer, Condition, Life, Op, Place, Shown, Token};
use server::stored::Outcome;
use std::collections::BTreeMap;

/// The content of the databases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// The items, each with the token of the operation that stored it.
    items: BTreeMap<Place, (Shown, Token)>,
    /// The token of the operation that stored the item, for each read that found one.
    read: BTreeMap<Token, Token>,
    /// A lower bound of the number of uniques given in each database.
    given: [u64; 2],
}

impl State {
    /// Returns the items as clients see them.
    pub fn shown(&self) -> BTreeMap<Place, Shown> {
        let items = self.items.iter();
        items
            .map(|(place, (shown, _))| (place.clone(), shown.clone()))
            .collect()
    }

    /// Returns a lower bound of the number of uniques given.
    pub fn given(&self, database: u8) -> u64 {
        self.given[usize::from(database)]
    }

    fn put(&mut self, place: &Place, new: Shown, token: Token) -> Answer {
        match new.life {
            Life::Over => drop(self.items.remove(place)),
            Life::Long | Life::Endless => drop(self.items.insert(place.clone(), (new, token))),
        }
        Answer::Outcome(Outcome::Done)
    }

    fn give(&mut self, place: &Place) -> Option<(Shown, Token)> {
        self.given[usize::from(place.0)] += 1;
        self.items.get(place).cloned()
    }

    fn store(&mut self, how: Condition, place: &Place, new: &Shown, token: Token) -> Answer {
        let old = self.give(place);
        let joined = |old: Shown, before: &[u8], after: &[u8]| Shown {
            data: [before, after].concat(),
            ..old
        };
        let new = match (how, old) {
            (Condition::Add, None) | (Condition::Replace, Some(_)) => new.clone(),
            (Condition::Append, Some((old, _))) => joined(old.clone(), &old.data, &new.data),
            (Condition::Prepend, Some((old, _))) => joined(old.clone(), &new.data, &old.data),
            (Condition::Swap(_), None) => return Answer::Outcome(Outcome::NotFound),
            (Condition::Swap(seen), Some((_, stored))) => {
                // A token without an entry in `read` is that of a store.
                if stored != *self.read.get(&seen).unwrap_or(&seen) {
                    return Answer::Outcome(Outcome::Exists);
                }
                new.clone()
            }
            _ => return Answer::Outcome(Outcome::NotStored),
        };
        self.put(place, new, token)
    }

    fn count(&mut self, place: &Place, delta: u64, up: bool, token: Token) -> Answer {
        let Some((old, _)) = self.give(place) else {
            return Answer::Outcome(Outcome::NotFound);
        };
        let digits = old.data.split(|byte| *byte == b' ').next().unwrap_or_default();
        let number = std::str::from_utf8(digits)
            .ok()
            .and_then(|text| text.parse().ok());
        let Some(number) = number else {
            return Answer::Outcome(Outcome::NotNumber);
        };
        let number: u64 = match up {
            true => u64::wrapping_add(number, delta),
            false => u64::saturating_sub(number, delta),
        };
        // A shorter number keeps the length.
        let data = format!("{number:<width$}", width = old.data.len()).into_bytes();
        self.put(place, Shown { data, ..old }, token);
        Answer::Outcome(Outcome::Number(number))
    }

    fn touch(&mut self, place: &Place, life: Life) -> Option<Shown> {
        let (old, token) = self.give(place)?;
        let new = Shown { life, ..old };
        self.put(place, new.clone(), token);
        Some(new)
    }

    /// Removes the item after the place.
    fn evict(&mut self, (database, key): &Place) -> Answer {
        let behind = |place: &&Place| place.0 == *database && place.1 > *key;
        let next = self.items.keys().find(behind).cloned();
        let gone = next.and_then(|place| self.items.remove(&place));
        Answer::Items(u64::from(gone.is_some()))
    }

    /// Applies an operation.
    pub(super) fn specify(&mut self, op: &Op) -> Answer {
        match op {
            Op::Set(place, new, token) | Op::Put(place, new, token) => {
                self.give(place);
                self.put(place, new.clone(), *token)
            }
            Op::Store(how, place, new, token) => self.store(*how, place, new, *token),
            Op::Count(place, delta, up, token) => self.count(place, *delta, *up, *token),
            Op::Touch(place, life) => Answer::Outcome(match self.touch(place, *life) {
                Some(_) => Outcome::Done,
                None => Outcome::NotFound,
            }),
            Op::GetAndTouch(place, life) => Answer::Item(self.touch(place, *life)),
            Op::Delete(place) => Answer::Outcome(match self.items.remove(place) {
                Some(_) => Outcome::Done,
                None => Outcome::NotFound,
            }),
            Op::Read(place, token) => {
                let found = self.items.get(place).cloned();
                if let Some((_, stored)) = &found {
                    self.read.insert(*token, *stored);
                }
                Answer::Item(found.map(|(shown, _)| shown))
            }
            Op::Transaction(ops, commits) => {
                let before = self.items.clone();
                let each = ops.iter().map(|op| self.specify(op)).collect();
                if !commits {
                    self.items = before;
                }
                Answer::Each(each)
            }
            Op::Flush(database) | Op::FlushLater(database, true) => {
                self.items.retain(|place, _| place.0 != *database);
                Answer::Done
            }
            Op::Evict(place) => self.evict(place),
            Op::ItemCount(database) => {
                let of_database = self.items.keys().filter(|place| place.0 == *database);
                Answer::Items(of_database.count() as u64)
            }
            Op::Spend(database) => {
                self.given[usize::from(*database)] += 1;
                Answer::Done
            }
            Op::FlushLater(_, false) | Op::Sweep(_) | Op::Bury(_) | Op::CountOn(_) | Op::Recover => {
                Answer::Done
            }
        }
    }
}

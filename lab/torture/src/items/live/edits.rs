//! Commands on one item, alone and in a transaction; and several items stored by one call.

use super::{Live, NOW};
use crate::items::{Answer, Condition, Life, Op, Place, Shown, Token};
use server::stored::{Decision, Failure, Header, Item, Outcome, Verb};

/// Returns an item as clients see it.
pub(super) fn shown(item: &Item<'_>) -> Shown {
    Shown {
        flags: item.header.flags,
        data: item.data.to_vec(),
        life: match item.header.expiry {
            0 => Life::Endless,
            u64::MAX => Life::Long,
            _ => Life::Over,
        },
    }
}

fn expiry(life: Life) -> u64 {
    match life {
        Life::Over => 1,
        Life::Long => u64::MAX,
        Life::Endless => 0,
    }
}

/// Appends the value of an item to `put`.
fn fill(new: &Shown, unique: u64, put: &mut Vec<u8>) {
    let header = Header {
        unique,
        expiry: expiry(new.life),
        flags: new.flags,
        marks: 0,
    };
    header.begin(put);
    put.extend_from_slice(&new.data);
}

impl Live {
    /// Executes a command on one item.
    pub(super) fn edit(&self, op: &Op, in_transaction: bool) -> Result<Answer, Failure> {
        if let Op::Read(place, token) = op {
            return match in_transaction {
                true => Ok(Answer::Item(self.store(place.0).read(&place.1, NOW, shown)?)),
                false => self.get(place, *token),
            };
        }
        // A transaction has the gate exclusively, so no other thread edits.
        let _edits = (!in_transaction).then(|| self.edits.shared());
        let scratch = &mut Vec::new();
        Ok(match op {
            Op::Set(place, new, token) => {
                let unique = self.set(place, new)?;
                if !in_transaction {
                    self.remember(*token, unique);
                }
                Answer::Outcome(Outcome::Done)
            }
            Op::Store(how, (database, key), new, _) => {
                let verb = match how {
                    Condition::Add => Verb::Add,
                    Condition::Replace => Verb::Replace,
                    Condition::Append => Verb::Append,
                    Condition::Prepend => Verb::Prepend,
                    Condition::Swap(token) => match self.seen(*token) {
                        Some(unique) => Verb::Cas(unique),
                        None => return Ok(Answer::Unseen),
                    },
                };
                let header = (new.flags, expiry(new.life));
                let store = self.store(*database);
                Answer::Outcome(store.store(verb, key, header, &new.data, NOW, scratch)?)
            }
            Op::Count((database, key), delta, up, _) => {
                let counted = self.store(*database).count(key, *delta, *up, NOW, scratch)?;
                Answer::Outcome(counted.0)
            }
            Op::Touch((database, key), life) => {
                let touched = self.store(*database).touch(key, expiry(*life), NOW, scratch)?;
                Answer::Outcome(touched)
            }
            Op::GetAndTouch((database, key), life) => {
                let touched = self.store(*database).touch(key, expiry(*life), NOW, scratch)?;
                // The scratch space still holds the value stored.
                let item = (touched == Outcome::Done).then(|| Item::read(scratch)).flatten();
                Answer::Item(item.as_ref().map(shown))
            }
            Op::Delete((database, key)) => Answer::Outcome(self.store(*database).delete(key, NOW)?),
            Op::Sweep(database) => {
                self.store(*database).sweep(&mut None, usize::MAX, NOW)?;
                Answer::Done
            }
            Op::Bury((database, key)) => {
                self.store(*database).bury(key, NOW)?;
                Answer::Done
            }
            other => unreachable!("{other:?} is not a command on one item"),
        })
    }

    /// Stores an item, and checks that its unique is larger than that of the item it replaces. Returns the unique.
    fn set(&self, (database, key): &Place, new: &Shown) -> Result<u64, Failure> {
        let mut given = 0;
        self.store(*database)
            .change(key, NOW, &mut Vec::new(), |old, unique, put| {
                let older = old.map_or(0, |old| old.header.unique);
                assert!(
                    older < unique,
                    "an item with the unique {older} is replaced by one with the unique {unique}"
                );
                given = unique;
                fill(new, unique, put);
                Decision::Put(())
            })?;
        Ok(given)
    }

    /// Reads an item, and removes it if it is dead.
    fn get(&self, place: &Place, token: Token) -> Result<Answer, Failure> {
        let (database, key) = place;
        let store = self.store(*database);
        let mut dead = Vec::new();
        let answer = {
            let (guard, mut found) = (heap::pin(), [None]);
            store.get(&[key], NOW, &guard, &mut dead, &mut found)?;
            let [value] = found;
            let item = value.as_deref().and_then(Item::read);
            if let Some(item) = &item {
                self.remember(token, item.header.unique);
            }
            item.as_ref().map(shown)
        };
        if !dead.is_empty() {
            let _edits = self.edits.shared();
            // If the pool is full, the next reader of this item will try again.
            self.unless_full(store.bury(key, NOW).map(|_| Answer::Done))
                .map_err(|error| Failure::Index(index::Error::Refused(error.into())))?;
        }
        Ok(Answer::Item(answer))
    }

    /// Stores items in one call.
    pub(in crate::items) fn put_many(&self, ops: &[&Op]) -> Result<Vec<Result<Answer, Failure>>, Failure> {
        let _gate = self.gate.shared();
        let mut puts = Vec::new();
        for op in ops {
            if let Op::Put(place, new, token) = op {
                puts.push((place, new, *token));
            }
        }
        let database = puts.first().map_or(0, |((database, _), ..)| *database);
        self.tick(database)?;
        let _edits = self.edits.shared();
        let keys: Vec<&[u8]> = puts.iter().map(|((_, key), ..)| &key[..]).collect();
        let (mut uniques, mut answers) = (vec![0; puts.len()], Vec::new());
        let fill = |i: usize, unique: u64, put: &mut Vec<u8>| {
            uniques[i] = unique;
            fill(puts[i].1, unique, put);
        };
        let done = |_, done: Result<(), Failure>| answers.push(done.map(|()| Answer::Outcome(Outcome::Done)));
        self.store(database)
            .put_many(&keys, &mut Vec::new(), fill, done)?;
        for (((.., token), unique), answer) in puts.iter().zip(uniques).zip(&answers) {
            if answer.is_ok() {
                self.remember(*token, unique);
            }
        }
        Ok(answers)
    }

    /// Skips uniques, and has the next ones reserved by an edit that changes nothing. No edit may run meanwhile.
    pub(super) fn spend(&self, database: u8) -> Result<Answer, Failure> {
        self.store(database).pass_uniques(2);
        self.first_unique(database)?;
        Ok(Answer::Done)
    }

    /// Takes and returns the next unique.
    pub(in crate::items) fn first_unique(&self, database: u8) -> Result<u64, Failure> {
        self.store(database)
            .change(b"no key", NOW, &mut Vec::new(), |_, unique, _| {
                Decision::Keep(unique)
            })
    }
}

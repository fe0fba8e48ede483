//! An event store: events in order of arrival, and an index of them by subject.
//!
//! One transaction writes both maps, so that the index names exactly the existing events, whenever a crash comes.
//!
//! `cargo run -p wollemi --features derive --example event_store`

use serde::{Deserialize, Serialize};
use std::error::Error;
use wollemi::{Db, Key, TypedMap};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Event {
    Opened { owner: String },
    Deposited { cents: u64 },
    Withdrawn { cents: u64 },
}

/// The index's keys: by account, and for each account in the order of its events.
#[derive(Debug, Key)]
struct OfAccount {
    account: String,
    number: u64,
}

struct Store {
    db: Db,
    events: TypedMap<u64, (String, Event)>,
    by_account: TypedMap<OfAccount, ()>,
}

impl Store {
    fn open(db: Db) -> Result<Store, wollemi::Error> {
        Ok(Store {
            events: TypedMap::new(db.map("events")?),
            by_account: TypedMap::new(db.map("events by account")?),
            db,
        })
    }

    /// Appends an event and returns its number. If two threads append at the same time, one of them runs its
    /// transaction again.
    fn append(&self, account: &str, event: &Event) -> Result<u64, wollemi::Error> {
        let entry = (account.to_owned(), event.clone());
        self.db.transact(|tx| {
            let last = self.events.last_in(tx)?;
            let number = last.map_or(0, |(number, _)| number + 1);
            self.events.upsert_in(tx, &number, &entry)?;
            let key = OfAccount {
                account: account.to_owned(),
                number,
            };
            self.by_account.upsert_in(tx, &key, &())?;
            Ok(number)
        })
    }

    /// Returns the events of one account, in order.
    fn of(&self, account: &str) -> Result<Vec<Event>, wollemi::Error> {
        let keys = self.by_account.with_first(&account.to_owned());
        let numbers: Vec<u64> = keys
            .map(|entry| Ok(entry?.0.number))
            .collect::<Result<_, wollemi::Error>>()?;
        let events = self.events.multi_get(&numbers)?;
        Ok(events.into_iter().flatten().map(|(_, event)| event).collect())
    }

    fn balance(&self, account: &str) -> Result<u64, wollemi::Error> {
        let balance = self.of(account)?.iter().fold(0, |cents: u64, event| match event {
            Event::Opened { .. } => cents,
            Event::Deposited { cents: more } => cents + more,
            Event::Withdrawn { cents: less } => cents - less,
        });
        Ok(balance)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("events.pool");
    {
        let store = Store::open(Db::open(&path)?)?;
        std::thread::scope(|scope| {
            let threads = ["alice", "bob"].map(|owner| {
                let store = &store;
                scope.spawn(move || {
                    store.append(
                        owner,
                        &Event::Opened {
                            owner: owner.to_owned(),
                        },
                    )?;
                    for cents in 1..=20 {
                        store.append(owner, &Event::Deposited { cents })?;
                    }
                    store.append(owner, &Event::Withdrawn { cents: 10 })
                })
            });
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().expect("no panic").map(drop))
        })?;
    }
    // The next opening is instant, with these few events as with a hundred million.
    let store = Store::open(Db::open(&path)?)?;
    for account in ["alice", "bob", "carol"] {
        println!(
            "{account}: {} events, {} cents",
            store.of(account)?.len(),
            store.balance(account)?
        );
    }
    assert_eq!(store.of("alice")?.len(), 22);
    assert_eq!(store.balance("bob")?, 200);
    assert_eq!(store.events.iter().count(), 44);
    Ok(())
}

#[cfg(test)]
mod tests {
    /// Runs the example, whose assertions check it.
    #[test]
    fn runs() {
        super::main().expect("it runs");
    }
}

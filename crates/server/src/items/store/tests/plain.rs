//! Any sequence of commands does what a plain map says.

use super::*;
use crate::items::number;
use proptest::prelude::*;
use std::collections::HashMap;

#[derive(Clone, Debug)]
enum Step {
    /// Several items together: key, lifetime, data.
    Put(Vec<(u8, u8, Vec<u8>)>),
    Store(Verb, u8, u8, Vec<u8>),
    Cas(u8, bool),
    Count(u8, u64, bool),
    Touch(u8, u8),
    Delete(u8),
    Flush,
    Pass(u8),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let verb = prop_oneof![
        Just(Verb::Add),
        Just(Verb::Replace),
        Just(Verb::Append),
        Just(Verb::Prepend)
    ];
    let data = || {
        prop_oneof![
            "[0-9]{0,4}".prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..600)
        ]
    };
    prop_oneof![
        4 => prop::collection::vec((0..4u8, 0..4u8, data()), 1..6).prop_map(Step::Put),
        4 => (verb, 0..4u8, 0..4u8, data()).prop_map(|(verb, key, lifetime, data)| Step::Store(verb, key, lifetime, data)),
        2 => (0..4u8, any::<bool>()).prop_map(|(key, right)| Step::Cas(key, right)),
        2 => (0..4u8, any::<u64>(), any::<bool>()).prop_map(|(key, delta, up)| Step::Count(key, delta, up)),
        1 => (0..4u8, 0..4u8).prop_map(|(key, lifetime)| Step::Touch(key, lifetime)),
        1 => (0..4u8).prop_map(Step::Delete),
        1 => Just(Step::Flush),
        2 => (0..3u8).prop_map(Step::Pass),
        1 => Just(Step::Reopen),
    ]
}

/// The model: the data and the expiry of each key's item.
type Plain = HashMap<u8, (Vec<u8>, u64)>;

proptest! {
    /// Any sequence of commands, with time passing and restarts, does what a plain map says.
    #[test]
    fn commands_do_what_a_plain_map_says(steps in prop::collection::vec(step(), 1..80)) {
        let index = ModelIndex::new();
        let mut store = open(&index, NOW);
        let mut now = NOW;
        let mut plain = Plain::new();
        let mut scratch = Vec::new();
        for (turn, step) in (0..).zip(steps) {
            if turn % 5 == 0 {
                prop_assert!(store.count_on(1).is_ok());
            }
            plain.retain(|_, (_, expiry)| *expiry == 0 || *expiry > now);
            match step {
                Step::Put(new) => {
                    let expiry = |lifetime: u8| item::expiry(lifetime.into(), now);
                    let each: Vec<_> = new
                        .iter()
                        .map(|(key, lifetime, data)| (std::slice::from_ref(key), expiry(*lifetime), data.as_slice()))
                        .collect();
                    prop_assert!(put(&store, &each).iter().all(Result::is_ok));
                    let each = new.into_iter().map(|(key, lifetime, data)| (key, (data, expiry(lifetime))));
                    plain.extend(each);
                }
                Step::Store(verb, key, lifetime, data) => {
                    let expiry = item::expiry(lifetime.into(), now);
                    let old = plain.get(&key).cloned();
                    let new = match (verb, old) {
                        (Verb::Add, None) | (Verb::Replace, Some(_)) => Some((data.clone(), expiry)),
                        (Verb::Append, Some((old, expiry))) => Some(([&old[..], &data].concat(), expiry)),
                        (Verb::Prepend, Some((old, expiry))) => Some(([&data[..], &old].concat(), expiry)),
                        _ => None,
                    };
                    let new = new.filter(|(data, _)| data.len() <= LARGEST);
                    let want = if new.is_some() { Outcome::Done } else { Outcome::NotStored };
                    plain.extend(new.map(|new| (key, new)));
                    prop_assert_eq!(store.store(verb, &[key], (7, expiry), &data, now, &mut scratch).ok(), Some(want));
                }
                Step::Cas(key, right) => {
                    let guard = heap::pin();
                    let value = index.get(&[key], &guard).ok().flatten();
                    let unique = value.as_ref().and_then(|value| Item::read(value)).map_or(1, |item| item.header.unique);
                    let want = match plain.get_mut(&key) {
                        None => Outcome::NotFound,
                        Some(_) if !right => Outcome::Exists,
                        Some(item) => {
                            *item = (b"cas".to_vec(), 0);
                            Outcome::Done
                        }
                    };
                    let verb = Verb::Cas(if right { unique } else { unique + 1 });
                    prop_assert_eq!(store.store(verb, &[key], (7, 0), b"cas", now, &mut scratch).ok(), Some(want));
                }
                Step::Count(key, delta, up) => {
                    let want = match plain.get_mut(&key) {
                        None => Outcome::NotFound,
                        Some((data, _)) => match number::leading(data) {
                            None => Outcome::NotNumber,
                            Some(old) => {
                                let new = if up { old.wrapping_add(delta) } else { old.saturating_sub(delta) };
                                *data = format!("{new:<width$}", width = data.len()).into_bytes();
                                Outcome::Number(new)
                            }
                        },
                    };
                    let counted = store.count(&[key], delta, up, now, &mut scratch);
                    prop_assert_eq!(counted.map(|(outcome, _)| outcome).ok(), Some(want));
                }
                Step::Touch(key, lifetime) => {
                    let expiry = item::expiry(lifetime.into(), now);
                    let want = match plain.get_mut(&key) {
                        None => Outcome::NotFound,
                        Some(item) => {
                            item.1 = expiry;
                            Outcome::Done
                        }
                    };
                    prop_assert_eq!(store.touch(&[key], expiry, now, &mut scratch).ok(), Some(want));
                }
                Step::Delete(key) => {
                    let want = if plain.remove(&key).is_some() { Outcome::Done } else { Outcome::NotFound };
                    prop_assert_eq!(store.delete(&[key], now).ok(), Some(want));
                }
                Step::Flush => {
                    plain.clear();
                    prop_assert!(store.flush(None).is_ok());
                }
                Step::Pass(seconds) => now += u64::from(seconds) * 1000,
                Step::Reopen => store = open(&index, now),
            }
        }
        while !store.count_on(2).expect("the model does not fail") {}
        // Items that a flush has dropped do not count; expired ones do.
        let mut kept = 0;
        let unbounded = (Bound::Excluded(record::KEY), Bound::Unbounded);
        let guard = heap::pin();
        let counted = index.scan(unbounded.0, unbounded.1, Direction::Forward, &guard, &mut |_, value| {
            kept += u64::from(!store.holds_flushed(&value));
            ControlFlow::Continue(())
        });
        prop_assert!(counted.is_ok());
        prop_assert_eq!(store.items(), (kept, true));
        prop_assert_eq!(store.keys(), index.check().expect("the model does not fail").keys);
        plain.retain(|_, (_, expiry)| *expiry == 0 || *expiry > now);
        let keys: Vec<[u8; 1]> = (0..4).map(|key| [key]).collect();
        let keys: Vec<&[u8]> = keys.iter().map(<[u8; 1]>::as_slice).collect();
        let guard = heap::pin();
        let mut found = [None; 4];
        prop_assert!(store.get(&keys, now, &guard, &mut Vec::new(), &mut found).is_ok());
        for (key, value) in (0..4).zip(found) {
            let read = value.as_ref().and_then(|value| Item::read(value));
            let read = read.map(|item| (item.data.to_vec(), item.header.expiry));
            prop_assert_eq!(read, plain.get(&key).cloned());
        }
    }
}

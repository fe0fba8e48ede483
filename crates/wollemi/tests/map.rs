//! A map behaves like a `BTreeMap`, for hostile keys too, read from either end, copied or borrowed.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use wollemi::{Db, Error, Map};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<u8>, Vec<u8>),
    Upsert(Vec<u8>, Vec<u8>),
    Update(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    Swap(Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>),
    Edit(Vec<u8>, Option<Vec<u8>>),
    PopFirst,
    PopLast,
}

/// Short keys over few bytes, so that they collide and are prefixes of each other.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(prop_oneof![Just(0u8), Just(0xff), Just(b'a'), Just(b'b')], 0..5),
        1 => (0..3usize).prop_map(|tail| vec![b'x'; 65_533 + tail]),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 8),
        2 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (0..100_000usize).prop_map(|len| vec![7; len]),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let few = || prop::option::of(prop_oneof![Just(vec![1u8; 8]), Just(vec![2u8; 3])]);
    prop_oneof![
        (key(), value()).prop_map(|(key, value)| Op::Insert(key, value)),
        (key(), value()).prop_map(|(key, value)| Op::Upsert(key, value)),
        (key(), value()).prop_map(|(key, value)| Op::Update(key, value)),
        key().prop_map(Op::Remove),
        (key(), few(), few()).prop_map(|(key, expected, new)| Op::Swap(key, expected, new)),
        (key(), prop::option::of(value())).prop_map(|(key, new)| Op::Edit(key, new)),
        Just(Op::PopFirst),
        Just(Op::PopLast),
    ]
}

/// Runs an operation on the map and on the model; both must return the same.
fn apply(map: &Map, model: &mut Model, op: Op) -> Result<(), Error> {
    match op {
        Op::Insert(key, value) => {
            assert_eq!(map.insert(&key, &value)?, !model.contains_key(&key));
            model.entry(key).or_insert(value);
        }
        Op::Upsert(key, value) => {
            map.upsert(&key, &value)?;
            model.insert(key, value);
        }
        Op::Update(key, value) => {
            assert_eq!(map.update(&key, &value)?, model.contains_key(&key));
            model.entry(key).and_modify(|old| *old = value);
        }
        Op::Remove(key) => assert_eq!(map.remove(&key)?, model.remove(&key).is_some()),
        Op::Swap(key, expected, new) => {
            let swapped = map.compare_and_swap(&key, expected.as_ref(), new.as_ref())?;
            assert_eq!(swapped, model.get(&key) == expected.as_ref());
            match new {
                _ if !swapped => {}
                Some(new) => drop(model.insert(key, new)),
                None => drop(model.remove(&key)),
            }
        }
        Op::Edit(key, new) => {
            let edited = map.edit_with(&key, |current| {
                assert_eq!(current, model.get(&key).map(Vec::as_slice));
                new.clone()
            });
            assert_eq!(edited?, new);
            match new {
                Some(new) => drop(model.insert(key, new)),
                None => drop(model.remove(&key)),
            }
        }
        Op::PopFirst => assert_eq!(map.pop_first()?, model.pop_first()),
        Op::PopLast => assert_eq!(map.pop_last()?, model.pop_last()),
    }
    Ok(())
}

fn crossed(lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>) -> bool {
    use Bound::{Excluded, Included, Unbounded};
    match (lower, upper) {
        (Unbounded, _) | (_, Unbounded) => false,
        (Included(lower), Included(upper)) => lower > upper,
        (Included(lower) | Excluded(lower), Included(upper) | Excluded(upper)) => lower >= upper,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn map_is_a_btree_map(
        ops in prop::collection::vec(op(), 1..120),
        lower in prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded)],
        upper in prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded)],
        prefix in key(),
        ends in prop::collection::vec(any::<bool>(), 0..200),
    ) {
        let map = Db::anonymous()?.map("m")?;
        let mut model = Model::new();
        for op in ops {
            apply(&map, &mut model, op)?;
        }
        prop_assert_eq!(map.count()?, model.len() as u64);
        prop_assert_eq!(map.len()?, model.len() as u64);
        prop_assert_eq!(map.is_empty()?, model.is_empty());
        let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        prop_assert_eq!(map.first()?, model.first_key_value().map(owned));
        prop_assert_eq!(map.last()?, model.last_key_value().map(owned));

        let keys: Vec<_> = model.keys().cloned().chain([prefix.clone()]).collect();
        let values: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
        prop_assert_eq!(map.multi_get(&keys)?, values.clone());
        for (key, value) in keys.iter().zip(values) {
            prop_assert_eq!(map.get(key)?, value);
        }

        let expected: Vec<_> = if crossed(&lower, &upper) {
            Vec::new()
        } else {
            model.range((lower.clone(), upper.clone())).map(|(k, v)| (k.clone(), v.clone())).collect()
        };
        let bounds = (lower, upper);
        let reader = map.reader();
        prop_assert_eq!(&from_ends(map.range(bounds.clone()), &ends)?, &expected);
        let borrowed = reader.range(bounds).map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())));
        prop_assert_eq!(&from_ends(borrowed, &ends)?, &expected);

        let expected: Vec<_> =
            model.iter().filter(|(k, _)| k.starts_with(&prefix)).map(|(k, v)| (k.clone(), v.clone())).collect();
        prop_assert_eq!(&from_ends(map.prefix(&prefix), &ends)?, &expected);
        let borrowed = reader.prefix(&prefix).map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())));
        prop_assert_eq!(&from_ends(borrowed, &ends)?, &expected);
    }
}

/// Takes items from the front or the back as `ends` says, then the rest from the front; returns them in key order.
fn from_ends<T>(
    mut entries: impl DoubleEndedIterator<Item = Result<T, Error>>,
    ends: &[bool],
) -> Result<Vec<T>, Error> {
    let (mut front, mut back) = (Vec::new(), Vec::new());
    for &end in ends {
        let next = if end { entries.next_back() } else { entries.next() };
        let Some(entry) = next.transpose()? else { break };
        if end { &mut back } else { &mut front }.push(entry);
    }
    front.extend(entries.collect::<Result<Vec<_>, _>>()?);
    front.extend(back.into_iter().rev());
    Ok(front)
}

/// Iteration over more entries than one batch holds, with values large enough to end batches early.
#[test]
fn batches_join_without_gap_or_repeat() -> Result<(), Error> {
    let map = Db::anonymous()?.map("m")?;
    let value = |i: u32| vec![i as u8; if i.is_multiple_of(50) { 700_000 } else { 9 }];
    map.load((0..3000u32).map(|i| (i.to_be_bytes(), value(i))))?;
    for (i, entry) in (0..).zip(&map) {
        assert_eq!(entry?, (u32::to_be_bytes(i).to_vec(), value(i)));
    }
    let reversed = map.iter().rev().collect::<Result<Vec<_>, _>>()?;
    assert_eq!(reversed.len(), 3000);
    assert!(reversed.windows(2).all(|pair| pair[0].0 > pair[1].0));
    Ok(())
}

/// Threads that increment one key by closures lose no increment.
#[test]
fn edits_by_closures_are_atomic() -> Result<(), Error> {
    const THREADS: u64 = 4;
    const EACH: u64 = 1000;
    let map = Db::anonymous()?.map("m")?;
    let number =
        |bytes: Option<&[u8]>| bytes.map_or(0, |b| u64::from_le_bytes(b.try_into().expect("8 bytes")));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let edited = map.edit_with("count", |old| Some((number(old) + 1).to_le_bytes().to_vec()));
                    assert!(edited.expect("there is room").is_some());
                }
            });
        }
    });
    assert_eq!(number(map.get("count")?.as_deref()), THREADS * EACH);
    Ok(())
}

/// A key or value above the limit is refused with both lengths named, and changes nothing.
#[test]
fn lengths_above_the_limits_are_refused() -> Result<(), Error> {
    let map = Db::anonymous()?.map("m")?;
    let long = vec![1; 65_536];
    let error = map.upsert(&long, "v").expect_err("too long").to_string();
    assert_eq!(error, "key of 65536 bytes: the longest key is 65535 bytes");
    assert!(map.get(&long).is_err());
    let huge = vec![1; (64 << 20) + 1];
    let error = map.upsert("k", &huge).expect_err("too long").to_string();
    assert_eq!(
        error,
        "value of 67108865 bytes: the longest value is 67108864 bytes"
    );
    assert!(map.is_empty()?);
    map.upsert("k", &huge[1..])?;
    assert_eq!(map.get("k")?.map(|value| value.len()), Some(64 << 20));
    Ok(())
}

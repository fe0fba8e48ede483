//! Calls of typed maps, with numbers, text and pairs as keys. The default index holds them.

use super::unordered::{not_refused, not_refused_by};
use super::{Worker, Wrong, same};
use std::collections::BTreeMap;
use wollemi::{Durability, Error, Map, TypedMap};

impl Worker<'_> {
    /// Calls typed maps of the thread's own. The map of numbers is empty before and afterwards, unless the process is
    /// killed meanwhile.
    pub(super) fn typed(&mut self) -> Result<Option<Wrong>, Error> {
        let name = format!("numbers of {}", self.thread);
        let map: TypedMap<u64, (u32, String)> = TypedMap::new(self.db.map(&name)?);
        clear(map.map())?;
        let ordered = map.map().index_kind().is_ordered();
        let value = |key: u64| (key as u32 * 3, format!("text {key}"));
        let mut wrong = None;
        let mut expected = BTreeMap::new();
        for key in [5, 2, 7, 2] {
            let absent = expected.insert(key, value(key)).is_none();
            wrong = wrong.or(same("insert", map.insert(&key, &value(key))?, absent).err());
        }
        map.upsert(&2, &value(4))?;
        expected.insert(2, value(4));
        wrong = wrong
            .or(same("get", map.get(&2)?, Some(value(4))).err())
            .or(same("contains", map.contains(&3)?, false).err())
            .or(same("key", map.key(&258), 258u64.to_be_bytes().to_vec()).err())
            .or(same("value", map.map().get(map.key(&7))?, Some(map.value(&value(7))?)).err());
        let mut all: Vec<_> = map.iter().collect::<Result<_, _>>()?;
        if ordered {
            let some: Vec<_> = map.range(3..).rev().collect::<Result<_, _>>()?;
            let after: Vec<_> = expected
                .range(3..)
                .rev()
                .map(|(key, value)| (*key, value.clone()))
                .collect();
            wrong = wrong.or(same("range", some, after).err());
        } else {
            all.sort();
            wrong = wrong.or(not_refused_by("range", map.range(3..)));
        }
        wrong = wrong.or(same("iter", all, expected.into_iter().collect()).err());
        let seen = self.db.transact(|tx| -> Result<_, Error> {
            let inserted = map.insert_in(tx, &5, &value(1))?;
            map.upsert_in(tx, &9, &value(9))?;
            let removed = map.remove_in(tx, &9)?;
            let behind = map.range_in(tx, 6..).map(Iterator::count);
            let behind = match ordered {
                true => Ok(behind?),
                false => not_refused("range_in", behind).map_or(Ok(1), Err),
            };
            Ok((inserted, removed, behind, map.get_in(tx, &9)?))
        })?;
        wrong = wrong
            .or(same("a typed transaction", seen, (false, true, Ok(1), None)).err())
            .or(same("len", map.len()?, 3).err());
        if ordered {
            let ends = (map.first()?, map.last()?);
            wrong = wrong
                .or(same("ends", ends, (Some((2, value(4))), Some((7, value(7))))).err())
                .or(same("pop_first", map.pop_first()?, Some((2, value(4)))).err())
                .or(same("pop_last", map.pop_last()?, Some((7, value(7)))).err());
        } else {
            wrong = wrong
                .or(not_refused("first", map.first()))
                .or(not_refused("last", map.last()))
                .or(not_refused("pop_first", map.pop_first()))
                .or(not_refused("pop_last", map.pop_last()))
                .or(same("remove", [map.remove(&2)?, map.remove(&7)?], [true; 2]).err());
        }
        let last = (map.remove(&5)?, map.is_empty()?);
        wrong = wrong.or(same("remove and is_empty", last, (true, true)).err());
        Ok(wrong.or(self.typed_texts()?))
    }

    /// Calls a typed map of text keys with common prefixes, and one of pairs.
    fn typed_texts(&mut self) -> Result<Option<Wrong>, Error> {
        let map: TypedMap<String, u64> = TypedMap::new(self.db.map(&format!("texts of {}", self.thread))?);
        let pairs: TypedMap<(String, u8), u64> =
            TypedMap::new(self.db.map(&format!("pairs of {}", self.thread))?);
        clear(map.map())?;
        clear(pairs.map())?;
        let ordered = map.map().index_kind().is_ordered();
        let [a, ab, b] = ["a", "ab", "b"].map(str::to_owned);
        let mut watch = map.watch(10)?;
        let mut wrong = same("load", map.load([(&a, &1), (&ab, &2), (&b, &3)])?, 3).err();
        let snapshot = self.db.snapshot()?;
        wrong = wrong
            .or(same("update", map.update(&ab, &4)?, true).err())
            .or(same(
                "compare_and_swap",
                map.compare_and_swap(&ab, Some(&2), None)?,
                false,
            )
            .err())
            .or(same(
                "edit_with",
                map.edit_with(&a, |value| value.map(|value| value + 10))?,
                Some(11),
            )
            .err())
            .or(same(
                "multi_get",
                map.multi_get(["b", "c", "a"])?,
                vec![Some(3), None, Some(11)],
            )
            .err())
            .or(match ordered {
                true => same("prefix", map.prefix("a").count(), 2).err(),
                false => not_refused_by("prefix", map.prefix("a")),
            })
            .or(same("view", map.view(&snapshot)?.get("ab")?, Some(2)).err());
        drop(snapshot);
        let mut events = Vec::new();
        while let Some(event) = watch.try_next()? {
            events.push(event);
        }
        let changed = |key: &String, value| wollemi::Event::Changed {
            key: key.clone(),
            value: Some(value),
        };
        let expected =
            [(&a, 1), (&ab, 2), (&b, 3), (&ab, 4), (&a, 11)].map(|(key, value)| changed(key, value));
        wrong = wrong.or(same("watch", events, expected.to_vec()).err());
        for (text, number) in [(&a, 2), (&ab, 1), (&a, 1)] {
            pairs.upsert(&(text.clone(), number), &1)?;
        }
        wrong = wrong.or(self.typed_handles(&map)?);
        if !ordered {
            let tx = self.db.begin();
            return Ok(wrong
                .or(not_refused_by("with_first", pairs.with_first(&a)))
                .or(not_refused("with_first_in", pairs.with_first_in(&tx, &a))));
        }
        let first: Vec<_> = pairs.with_first(&a).collect::<Result<_, _>>()?;
        let tx = self.db.begin();
        let first_in: Vec<_> = pairs.with_first_in(&tx, &a)?.collect::<Result<_, _>>()?;
        let expected = vec![((a.clone(), 1), 1), ((a, 2), 1)];
        Ok(wrong
            .or(same("with_first", first, expected.clone()).err())
            .or(same("with_first_in", first_in, expected).err()))
    }
}

impl Worker<'_> {
    /// Calls a typed map of text, in a transaction and through a handle with another durability. No key of the map may
    /// begin with `c`.
    fn typed_handles(&self, map: &TypedMap<String, u64>) -> Result<Option<Wrong>, Error> {
        let ordered = map.map().index_kind().is_ordered();
        let [c, cd, d] = ["c", "cd", "d"].map(str::to_owned);
        let mut watch = map.watch_prefix("c", 10)?;
        let mut wrong = None;
        let eventual = map.with_durability(Durability::Eventual);
        eventual.upsert(&c, &5)?;
        eventual.upsert(&d, &7)?;
        let seen = self.db.transact(|tx| -> Result<_, Error> {
            map.upsert_in(tx, &cd, &6)?;
            let found = map.prefix_in(tx, "c").map(Iterator::count);
            let found = match ordered {
                true => Ok(found?),
                false => not_refused("prefix_in", found).map_or(Ok(2), Err),
            };
            Ok((map.contains_in(tx, "cd")?, map.contains_in(tx, "ce")?, found))
        })?;
        let changed = |key: String, value| {
            Some(wollemi::Event::Changed {
                key,
                value: Some(value),
            })
        };
        wrong = wrong.or(self.typed_ends_in(map, &c, &d)?);
        let events = [watch.try_next()?, watch.try_next()?, watch.try_next()?];
        let expected = [changed(c, 5), changed(cd, 6), None];
        Ok(wrong
            .or(same("prefix_in", seen, (true, false, Ok(2))).err())
            .or(same("watch_prefix", events, expected).err()))
    }

    /// Calls of a typed map of text in a transaction that is dropped. The map has the key `there`, and its last key is
    /// `last`, with the value 7.
    fn typed_ends_in(
        &self,
        map: &TypedMap<String, u64>,
        there: &String,
        last: &str,
    ) -> Result<Option<Wrong>, Error> {
        let mut tx = self.db.begin();
        let wrong = same("update_in", map.update_in(&mut tx, there, &8)?, true).err();
        let edited = map.edit_with_in(&mut tx, there, |value| value.map(|value| value + 1))?;
        let found = map.multi_get_in(&tx, [&**there, "none"])?;
        let wrong = wrong.or(same("edit_with_in", edited, Some(9)).err()).or(same(
            "multi_get_in",
            found,
            vec![Some(9), None],
        )
        .err());
        if !map.map().index_kind().is_ordered() {
            return Ok(wrong
                .or(not_refused("iter_in", map.iter_in(&tx)))
                .or(not_refused("first_in", map.first_in(&tx)))
                .or(not_refused("last_in", map.last_in(&tx)))
                .or(not_refused("pop_first_in", map.pop_first_in(&mut tx)))
                .or(not_refused("pop_last_in", map.pop_last_in(&mut tx))));
        }
        let first = map.first_in(&tx)?;
        let listed = map.iter_in(&tx)?.next().transpose()?;
        let end = Some((last.to_owned(), 7));
        Ok(wrong
            .or(same("iter_in", listed, first.clone()).err())
            .or(same("last_in", map.last_in(&tx)?, end.clone()).err())
            .or(same("pop_last_in", map.pop_last_in(&mut tx)?, end).err())
            .or(same("pop_first_in", map.pop_first_in(&mut tx)?, first).err()))
    }
}

/// Removes all entries. A killed process may have left some.
pub(super) fn clear(map: &Map) -> Result<(), Error> {
    for entry in map.iter() {
        map.remove(entry?.0)?;
    }
    Ok(())
}

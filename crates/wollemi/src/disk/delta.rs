//! The log's records between two positions: the last one of each key, by map, sorted.
//!
//! Keys and values are copied into one buffer per map, in the order of the log, and references to them are sorted. A
//! delta thus takes about as much memory as its records take in the log.

use crate::disk::run::RunEntry;
use crate::files_error::FilesError;
use index::Order;
use log::{Change, Disk, Log, Lsn};
use std::collections::HashMap;

/// The log's records about a map.
#[derive(Default)]
pub(crate) struct MapDelta {
    /// The map's name.
    pub name: String,
    /// The map's index, if the map was created.
    pub made: Option<String>,
    /// Whether the map's earlier content was dropped.
    pub dropped: bool,
    keys: Statements,
}

/// Records about keys; one key may have several.
#[derive(Default)]
struct Statements {
    refs: Vec<StatementRef>,
    bytes: Vec<u8>,
}

/// A record's place in the buffer.
#[derive(Clone, Copy)]
struct StatementRef {
    /// The key's first bytes, if the map is ordered by bytes. Most comparisons need no more.
    prefix: u64,
    /// Where the key begins.
    at: usize,
    /// Number of earlier records. `at` does not order two records: an empty key with an empty value, or with none,
    /// takes no bytes.
    number: u32,
    /// Bytes of the key.
    key: u32,
    /// Length of the value after the key; `None`: the key was removed.
    value: Option<u32>,
}

/// The last record of each key, in the order of a map.
pub(crate) struct LastStatements(Statements);

/// The records of a part of the log, by map, and where the part ends.
pub(crate) struct Deltas {
    pub maps: Vec<MapDelta>,
    pub end: Lsn,
    /// Maps each name to its index in `maps`.
    numbers: HashMap<String, usize>,
}

impl Deltas {
    /// Reads the log between two positions; stops early after the first record that ends `max` or more bytes after the
    /// beginning. Calls `passed` with each record's end.
    pub fn read<D: Disk>(
        log: &Log<D>,
        (from, until): (Lsn, Lsn),
        max: u64,
        mut passed: impl FnMut(Lsn),
    ) -> Result<Deltas, FilesError> {
        let mut deltas = Deltas {
            maps: Vec::new(),
            end: until,
            numbers: HashMap::new(),
        };
        let mut scan = log.scan(from..until)?;
        while let Some(record) = scan.next()? {
            let end = record.end;
            for change in record.changes {
                deltas.take(change)?;
            }
            passed(end);
            if end.0 - from.0 >= max {
                deltas.end = end;
                break;
            }
        }
        Ok(deltas)
    }

    fn take(&mut self, change: Change<'_>) -> Result<(), FilesError> {
        match change {
            Change::Put { map, key, value } => self.map(map).keys.add(key, Some(value)),
            Change::Remove { map, key } => self.map(map).keys.add(key, None),
            Change::MapMade { map, index, .. } => self.map(map).made = Some(index.to_owned()),
            Change::MapDropped { map } => {
                *self.map(map) = MapDelta {
                    name: map.to_owned(),
                    dropped: true,
                    ..MapDelta::default()
                };
            }
            _ => {
                return Err(FilesError::damaged(
                    "log",
                    "a change that this program does not know",
                ));
            }
        }
        Ok(())
    }

    fn map(&mut self, name: &str) -> &mut MapDelta {
        let number = self.numbers.get(name).copied().unwrap_or_else(|| {
            self.numbers.insert(name.to_owned(), self.maps.len());
            self.maps.push(MapDelta {
                name: name.to_owned(),
                ..MapDelta::default()
            });
            self.maps.len() - 1
        });
        &mut self.maps[number]
    }
}

impl MapDelta {
    /// Returns whether any record is about a key.
    pub fn has_keys(&self) -> bool {
        !self.keys.refs.is_empty()
    }

    /// Takes the records about keys, and returns the last one of each key.
    pub fn take_last(&mut self, order: Order) -> LastStatements {
        let Statements { mut refs, bytes } = std::mem::take(&mut self.keys);
        if order.is_by_keys() {
            for one in &mut refs {
                one.prefix = prefix(one.key(&bytes));
            }
        }
        refs.sort_unstable_by(|a, b| {
            let keys = || order.compare(a.key(&bytes), b.key(&bytes));
            let latest_first = || b.number.cmp(&a.number);
            a.prefix.cmp(&b.prefix).then_with(keys).then_with(latest_first)
        });
        refs.dedup_by(|older, latest| older.key(&bytes) == latest.key(&bytes));
        LastStatements(Statements { refs, bytes })
    }
}

impl Statements {
    fn add(&mut self, key: &[u8], value: Option<&[u8]>) {
        // Lengths in the log have 32 bits, and a log of maximum length has fewer than 2^32 records.
        self.refs.push(StatementRef {
            prefix: 0,
            at: self.bytes.len(),
            number: self.refs.len() as u32,
            key: key.len() as u32,
            value: value.map(|value| value.len() as u32),
        });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
    }
}

impl StatementRef {
    fn key<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[self.at..][..self.key as usize]
    }
}

/// Returns the first eight bytes of a key as a number. Keys with different prefixes are ordered as their prefixes.
fn prefix(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = key.len().min(8);
    first[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(first)
}

impl LastStatements {
    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.0.refs.len()
    }

    /// Returns the record of this number.
    pub fn get(&self, number: usize) -> Option<RunEntry<'_>> {
        let Statements { refs, bytes } = &self.0;
        let one = refs.get(number)?;
        let value = one.at + one.key as usize;
        Some((
            one.key(bytes),
            one.value.map(|len| &bytes[value..][..len as usize]),
        ))
    }

    /// Iterates over all records.
    pub fn iter(&self) -> impl Iterator<Item = RunEntry<'_>> {
        (0..self.len()).filter_map(|number| self.get(number))
    }

    /// Returns the number of the first key at or after `key`.
    pub fn first_from(&self, order: Order, key: &[u8]) -> usize {
        let Statements { refs, bytes } = &self.0;
        refs.partition_point(|one| order.compare(one.key(bytes), key).is_lt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(statements: &[(&'static str, Option<&'static str>)]) -> MapDelta {
        let mut delta = MapDelta::default();
        for (key, value) in statements {
            delta.keys.add(key.as_bytes(), value.map(str::as_bytes));
        }
        delta
    }

    fn texts(sorted: &LastStatements) -> Vec<(&str, Option<&str>)> {
        let text = |bytes| str::from_utf8(bytes).unwrap();
        sorted
            .iter()
            .map(|(key, value)| (text(key), value.map(text)))
            .collect()
    }

    const SAID: [(&str, Option<&str>); 10] = [
        ("long key 2", Some("1")),
        ("b", Some("2")),
        ("long key 1", None),
        ("b", None),
        ("", Some("3")),
        ("long key 2", Some("4")),
        ("b\0", Some("")),
        ("", Some("")),
        ("", None),
        ("", Some("")),
    ];

    /// The last record of each key is kept, in the order of bytes, within the prefix and after it.
    #[test]
    fn the_last_statement_of_each_key_counts() {
        let sorted = delta(&SAID).take_last(Order::Keys);
        let last = [
            ("", Some("")),
            ("b", None),
            ("b\0", Some("")),
            ("long key 1", None),
            ("long key 2", Some("4")),
        ];
        assert_eq!(texts(&sorted), last);
        assert_eq!(sorted.first_from(Order::Keys, b"b"), 1);
        assert_eq!(sorted.first_from(Order::Keys, b"long key 11"), 4);
        assert_eq!(sorted.first_from(Order::Keys, b"m"), 5);
        assert_eq!((sorted.get(5), sorted.len()), (None, 5));
    }

    /// The last of several records that take no bytes counts.
    #[test]
    fn a_removal_of_an_empty_key_counts() {
        let removed = [("", Some("")), ("", None)];
        let put = [("", None), ("", Some(""))];
        for said in [removed, put] {
            assert_eq!(texts(&delta(&said).take_last(Order::Keys)), [said[1]]);
        }
        let many: Vec<_> = removed.into_iter().cycle().take(100).collect();
        assert_eq!(texts(&delta(&many).take_last(Order::Keys)), [("", None)]);
    }

    /// A map with an order other than that of bytes is sorted in its own order.
    #[test]
    fn ranks_come_before_bytes() {
        let order = Order::Ranks(|key| key.last().map_or(0, |&last| u64::from(last ^ 0xff)));
        let keys: Vec<_> = texts(&delta(&SAID).take_last(order))
            .into_iter()
            .map(|(key, _)| key.to_owned())
            .collect();
        assert_eq!(keys, ["", "b", "long key 2", "long key 1", "b\0"]);
    }
}

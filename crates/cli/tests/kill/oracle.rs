//! The possible values of each key.
//!
//! Each key has one writer, so the writer's acknowledged operations determine its value, up to the operation in flight
//! at a kill, which may or may not have happened. Once a read has returned its effect, the effect must stay.

use crate::workload::{self, KEYS, Record, WRITERS};
use std::collections::{HashMap, HashSet};
use wollemi::Map;

type State = Option<u64>;

/// The possible states of each key: one, except for keys with an operation in flight at a kill.
pub struct Oracle {
    keys: HashMap<(u8, u32), Vec<State>>,
}

impl Oracle {
    pub fn new() -> Oracle {
        let keys = (0..WRITERS).flat_map(|writer| (0..KEYS).map(move |key| (writer, key)));
        Oracle {
            keys: keys.map(|key| (key, vec![None])).collect(),
        }
    }

    /// Applies the acknowledgements of one round.
    pub fn judge(&mut self, seed: u64, round: u64, records: &[Record]) {
        // All states of each key in this round, to judge the readers' acknowledgements.
        let mut history: HashMap<(u8, u32), HashSet<State>> = HashMap::new();
        let mut next = [0; WRITERS as usize];
        for record in records {
            let &Record::Wrote { writer, answer } = record else {
                continue;
            };
            let op = workload::op(seed, round, writer, next[usize::from(writer)]);
            next[usize::from(writer)] += 1;
            let states = self
                .keys
                .get_mut(&(writer, op.key))
                .expect("a key of the workload");
            history.entry((writer, op.key)).or_default().extend(states.iter());
            let after = states.iter().map(|&before| op.outcome(before));
            let after: HashSet<_> = after
                .filter(|outcome| outcome.1 == answer)
                .map(|outcome| outcome.0)
                .collect();
            assert!(
                !after.is_empty(),
                "round {round}: {op:?} of {writer} on {states:?} answered {answer}"
            );
            *states = after.into_iter().collect();
            history.entry((writer, op.key)).or_default().extend(states.iter());
        }

        let mut seen: HashMap<(u8, u32), HashSet<State>> = HashMap::new();
        for record in records {
            if let &Record::Saw { writer, key, version } = record {
                seen.entry((writer, key)).or_default().insert(version);
            }
        }
        for writer in 0..WRITERS {
            let op = workload::op(seed, round, writer, next[usize::from(writer)]);
            let name = (writer, op.key);
            let states = self.keys.get_mut(&name).expect("a key of the workload");
            let known = history.entry(name).or_default();
            known.extend(states.iter());
            let after: Vec<State> = states.iter().map(|&before| op.outcome(before).0).collect();
            let was_seen = seen.get(&name).is_some_and(|seen| {
                seen.iter()
                    .any(|state| !known.contains(state) && after.contains(state))
            });
            known.extend(&after);
            let unapplied = if was_seen { Vec::new() } else { states.clone() };
            *states = after
                .into_iter()
                .chain(unapplied)
                .collect::<HashSet<_>>()
                .into_iter()
                .collect();
        }
        for (name, seen) in seen {
            let known = history.get(&name).into_iter().flatten();
            let known: HashSet<_> = known.chain(&self.keys[&name]).copied().collect();
            let strange: Vec<_> = seen.difference(&known).collect();
            assert!(
                strange.is_empty(),
                "round {round}: {name:?} was seen as {strange:?}, but was {known:?}"
            );
        }
    }

    /// Compares the map with the possible values, key by key and in one scan; from here on the value found is the only
    /// one.
    pub fn compare(&mut self, map: &Map) {
        let mut present = 0;
        for (&(writer, key), states) in &mut self.keys {
            let found = map.get(workload::key(writer, key)).expect("read");
            let found = found.map(|value| workload::version(&value));
            assert!(
                states.contains(&found),
                "key {key} of {writer} holds {found:?}, not one of {states:?}"
            );
            *states = vec![found];
            present += usize::from(found.is_some());
        }
        let scanned: Vec<_> = map.iter().map(|entry| entry.expect("scanned").0).collect();
        assert!(scanned.is_sorted());
        assert_eq!(scanned.len(), present, "a scan sees what gets see");
    }
}

//! Loops run each operation when it is due, and check its result.

use super::*;
use crate::engine::Scanned;
use crate::keys::{KeyKind, Keys};
use crate::script::{Script, ScriptOptions, Steps};
use crate::workload::Workload;
use std::collections::BTreeMap;

/// An engine that delays the lookup of its first key.
struct Stalls(Duration);

impl Engine for Stalls {
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        let number = (0..KEYS as u64).find(|number| key == crate::keys::nth_u64(SEED, *number));
        if number == Some(0) {
            std::thread::sleep(self.0);
        }
        Ok(number)
    }
    fn insert(&self, _: &[u8], _: u64) -> Result<bool, Error> {
        Ok(true)
    }
    fn update(&self, _: &[u8], _: u64) -> Result<bool, Error> {
        Ok(true)
    }
    fn remove(&self, _: &[u8]) -> Result<bool, Error> {
        Ok(true)
    }
    fn scan(&self, _: &[u8], _: usize) -> Result<Scanned, Error> {
        Ok(Scanned::default())
    }
}

const KEYS: usize = 40;
const SEED: u64 = 1;

/// In an open loop, calls that become due during a stall beyond the deadline are made, and their latencies count from
/// when they were due: all 20 calls due within 20 ms are made, though the first takes 60 ms.
#[test]
fn what_was_due_before_the_deadline_is_done_after_it() {
    let keys = Keys::generate(KeyKind::U64, KEYS, SEED);
    let share = Share::only(Step::Read, keys.all());
    let pace = Pace {
        time: Some(Duration::from_millis(20)),
        repeat: true,
        rate: Some(1_000.0),
    };
    let pass = pass(&Stalls(Duration::from_millis(60)), "get", &[share], pace).unwrap();
    assert_eq!(pass.ops, 20);
    assert!(
        pass.latencies.quantile(0.0) >= 40_000_000,
        "{}",
        pass.latencies.quantile(0.0)
    );
}

/// A warm-up looks its keys up before the pass begins: neither its operations nor its time count.
#[test]
fn a_warm_up_is_not_measured() {
    const STALL: Duration = Duration::from_millis(60);
    let keys = Keys::generate(KeyKind::U64, KEYS, SEED);
    let share = Share::only(Step::Read, keys.part(1, 2));
    let began = Instant::now();
    let pass = warmed_pass(
        &Stalls(STALL),
        "get",
        Some(keys.part(0, 2)),
        &[share],
        Pace::default(),
    )
    .unwrap();
    assert_eq!(pass.ops, KEYS as u64 / 2);
    assert!(pass.seconds + STALL.as_secs_f64() <= began.elapsed().as_secs_f64());
}

/// In an open loop of several threads, operations are due one at a time, as evenly spaced as with one thread.
#[test]
fn threads_take_turns_in_an_open_loop() {
    const THREADS: usize = 4;
    let due: Vec<_> = (0..40u64)
        .map(|i| Due::new(1_000.0, i as usize % THREADS, THREADS).at(i / THREADS as u64, 1))
        .collect();
    let alone: Vec<_> = (0..40).map(|i| Due::new(1_000.0, 0, 1).at(i, 1)).collect();
    assert_eq!(due, alone);
    assert_eq!(due[7], Duration::from_millis(7));
    assert_eq!(
        Due::new(1_000.0, 1, 2).at(3, BATCH),
        Duration::from_millis(7 * 32)
    );

    // Due at 0, 1, 2, 3 and 4 ms, not two each at 0, 2 and 4 ms.
    let keys = Keys::generate(KeyKind::U64, KEYS, SEED);
    let shares = [0, 1].map(|i| Share::only(Step::Read, keys.part(i, 2)));
    let pace = Pace {
        time: Some(Duration::from_micros(4_500)),
        repeat: true,
        rate: Some(1_000.0),
    };
    assert_eq!(
        pass(&Stalls(Duration::ZERO), "get", &shares, pace).unwrap().ops,
        5
    );
}

/// Finding a key that should be absent is an error, and so is missing one that should be present.
#[test]
fn what_is_absent_is_absent() {
    let keys = Keys::generate(KeyKind::U64, 2 * KEYS, SEED);
    let pass = |step, half| {
        let share = Share::only(step, keys.part(half, 2));
        pass(&Stalls(Duration::ZERO), "get", &[share], Pace::default())
    };
    assert_eq!(pass(Step::Read, 0).unwrap().ops, KEYS as u64);
    assert_eq!(pass(Step::Miss, 1).unwrap().ops, KEYS as u64);
    assert!(matches!(pass(Step::Miss, 0), Err(Error::Wrong(_))));
    assert!(matches!(pass(Step::Read, 1), Err(Error::Wrong(_))));
}

/// An engine with all keys whose scans leave out keys at the beginning and at the end.
struct Cuts<'k> {
    keys: BTreeMap<&'k [u8], u64>,
    first: usize,
    last: usize,
}

impl Engine for Cuts<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        Ok(self.keys.get(key).copied())
    }
    fn insert(&self, _: &[u8], _: u64) -> Result<bool, Error> {
        Ok(true)
    }
    fn update(&self, _: &[u8], _: u64) -> Result<bool, Error> {
        Ok(true)
    }
    fn remove(&self, _: &[u8]) -> Result<bool, Error> {
        Ok(true)
    }
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        let range = self.keys.range(from..).map(|(_, value)| *value);
        let values: Vec<u64> = range.skip(self.first).take(length).collect();
        let kept = values.len().saturating_sub(self.last);
        Ok(values[..kept].iter().copied().collect())
    }
}

/// Scans up to the last key are right. A scan that ends a key too soon, begins a key too late, or finds nothing is an
/// error, with fixed and with varying lengths.
#[test]
fn scans_that_end_too_soon_are_wrong() {
    for name in ["scan100", "ycsb-e"] {
        let workload = Workload::named(name).unwrap();
        let options = ScriptOptions {
            ops: 300,
            threads: 2,
            distribution: crate::distribution::Distribution::Permutation,
            theta: 0.99,
            scans: workload.scans,
            seed: SEED,
        };
        let keys = Keys::generate_more(KeyKind::U64, 300, 100, SEED);
        let script = Script::new(
            workload,
            Steps::new(workload, 300, SEED),
            &keys,
            300,
            300,
            &options,
        );
        let scans = |first, last| {
            let keys = keys.first(300).iter().collect();
            let engine = Cuts { keys, first, last };
            pass(&engine, name, &script.shares(), Pace::default())
        };
        assert_eq!(scans(0, 0).unwrap().ops, 300, "{name}");
        for (first, last) in [(0, 1), (1, 0), (0, 300)] {
            let wrong = scans(first, last);
            assert!(matches!(wrong, Err(Error::Wrong(_))), "{name}: {first}, {last}");
        }
    }
}

//! The tree under the kit.

use super::added::Tracer;
use super::node::ENTRIES;
use super::step::Step;
use super::tree::BLink;
use heap::{Heap, Tracers};
use std::sync::Arc;
use wollemi_crashkit::words::{Done, OfWordMap, ROOT_OBJECT, WordMap, operation};
use wollemi_crashkit::{Crash, Failure, Forgiven, Lacks, Report, torture};

impl<S: Step> WordMap for BLink<Crash, S> {
    fn create(heap: &Heap<Crash>, name: &[u8]) -> Done<Self> {
        Ok(BLink::create(heap, name)?)
    }

    fn open(heap: &Heap<Crash>, name: &[u8]) -> Done<Option<Self>> {
        Ok(BLink::open(heap, name)?)
    }

    fn tracers() -> Tracers<Crash> {
        vec![Arc::new(Tracer)]
    }

    fn get(&self, key: u64) -> Done<Option<u64>> {
        Ok(BLink::get(self, key)?)
    }

    fn put(&self, key: u64, value: u64) -> Done<()> {
        Ok(BLink::put(self, key, value)?)
    }

    fn remove(&self, key: u64) -> Done<bool> {
        Ok(BLink::remove(self, key)?)
    }

    fn scan(&self, from: u64) -> Done<Vec<(u64, u64)>> {
        Ok(BLink::scan(self, from)?)
    }

    fn check(&self) -> Done<()> {
        Ok(BLink::check(self)?)
    }

    fn forgiven() -> &'static [Forgiven] {
        FORGIVEN
    }
}

/// Persists whose absence need not be detected.
const FORGIVEN: &[Forgiven] = &[
    ROOT_OBJECT,
    Forgiven {
        site: "blink: state",
        lacks: &[Lacks::Order],
        why: "a state, and then the new object that the next store leads to: either may be durable first",
    },
];

/// Number of keys in histories in which nodes split.
pub const KEYS: u64 = 20;

/// Number of keys that fit into one node.
pub const FEW_KEYS: u64 = ENTRIES as u64;

/// Returns a step as a subject whose heap accounts are checked.
pub fn accounted<S: Step>() -> OfWordMap<BLink<Crash, S>> {
    OfWordMap::default()
}

/// Returns a step that retires nothing yet as a subject whose heap accounts are not checked.
pub fn unaccounted<S: Step>() -> OfWordMap<BLink<Crash, S>> {
    OfWordMap::without_accounts()
}

/// Explores histories of a step, by this many threads on this many keys, until one fails.
pub fn try_step<S: Step>(
    subject: OfWordMap<BLink<Crash, S>>,
    threads: u32,
    keys: u64,
) -> Result<Report, Box<Failure>> {
    torture(subject, operation(keys))
        .seeds(1..=100)
        .operations(30)
        .threads(threads..=threads)
        .run()
}

//! The conformance suite: properties that every index must have.
//!
//! An index crate defines how to create, reopen and measure its index (a [`TestedIndex`]) and gets one test for each
//! property:
//!
//! ```
//! # extern crate wollemi_index as index;
//! use index::conformance::{Reopen, TestedIndex};
//! use index::{Index, model::ModelIndex};
//!
//! struct InMemory(ModelIndex);
//!
//! impl TestedIndex for InMemory {
//!     fn create() -> Self {
//!         InMemory(ModelIndex::new())
//!     }
//!     fn index(&self) -> &dyn Index {
//!         &self.0
//!     }
//!     fn reopen(self, _how: Reopen) -> Self {
//!         self // nothing to reopen in memory
//!     }
//!     fn used(&self) -> Option<u64> {
//!         Some(self.0.used())
//!     }
//! }
//!
//! index::conformance!(model: InMemory);
//! ```
//!
//! Everything random comes from one seed, which each property prints first. The environment variable
//! `CONFORMANCE_SEED` replays it (for threads: the same operations, not the same interleaving), and
//! `CONFORMANCE_SCALE` makes the work larger or smaller than 1.
//!
//! Tests of the order of keys run only for ordered indexes. Unordered indexes are tested in their own order, in which
//! they are walked, and must refuse ranges of keys.
//!
//! Stores of several keys that commit together are not subjects. Their tests record a history and pass it to the
//! checker of strict serializability ([`serializability`]).
//!
//! The properties are functions that panic if the index breaks the contract. The suite itself is tested on indexes that
//! are broken on purpose (`tests/doubles`). Crashes in the middle of an operation are the subject of other tests
//! ([`steps`], for radix trees).

mod bulk;
mod churn;
mod cliffs;
mod costs;
mod crew;
mod damage;
mod full;
mod growth;
mod histories;
mod keys;
mod limits;
mod linearizability;
mod oracle;
mod plan;
mod races;
mod recorded;
mod restarts;
pub mod serializability;
pub mod steps;
mod store;
mod together;
mod waiting;

pub use bulk::{
    a_build_that_fails_leaves_nothing_behind, a_build_without_memory_leaves_nothing_behind,
    an_index_is_built_of_nothing, an_index_is_built_of_sorted_pairs,
};
pub use churn::{borrowed_values_stay, scans_see_stable_keys};
pub use cliffs::{Counted, Lines, keys_beside_the_path_cost_nothing, there_are_no_cliffs};
pub use costs::{Cost, Costs};
pub use damage::{checks_find_damage, clear, damaged_pools_are_survived, every_kind_of_object, finds_damage};
pub use full::{
    a_write_waits_for_the_room_that_recovery_makes, an_empty_index_is_sound,
    inserts_without_memory_leave_nothing_behind,
};
pub use growth::{grows_and_empties_all_at_once, grows_and_empties_key_by_key, overwrites_leak_nothing};
pub use histories::{
    chains_of_prefixes, dense_numbers, every_byte_everywhere, extreme_bytes, few_distinct_bytes, long_keys,
    mixed_keys, random_bytes, random_numbers, shared_prefixes, wide_nodes,
};
pub use limits::{large_values, longest_keys, longest_value, value_lengths};
pub use linearizability::{HistoryEvent, Operation, Outcome, linearizable, linearizable_from};
pub use plan::{Plan, Random};
pub use races::{
    counters_add_up, own_keys_keep_their_values, racing_inserts_have_one_winner, tokens_are_conserved,
};
pub use recorded::{hot_keys_are_linearizable, neighbours_are_linearizable};
pub use restarts::{
    a_long_life_with_restarts, flags_of_locks_mean_nothing_after_a_crash,
    locks_held_at_a_crash_are_free_after_it, memory_of_ended_threads_is_reused,
    nodes_fill_up_and_empty_after_a_restart, old_keys_stay_when_new_ones_come_after_a_restart,
    restarts_follow_restarts,
};
pub use store::{Entries, IndexInFile, folder, options};
pub use waiting::{PATIENCE, settled, wait_until};

use crate::{Direction, Error, Guard, Index, Order, Visit};
use keys::Family;
use std::ops::Bound;
use std::time::{Duration, Instant};

/// How a subject is closed before it is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reopen {
    /// Orderly.
    Clean,
    /// As after a crash between two operations: nothing that runs on closing has run.
    Crash,
}

/// An index under test, with the pool it lives in.
pub trait TestedIndex: Sized {
    /// A new, empty index in a pool of its own.
    fn create() -> Self;

    /// The index.
    fn index(&self) -> &dyn Index;

    /// Closes and opens the pool. A subject whose pool cannot be reopened returns itself.
    fn reopen(self, how: Reopen) -> Self;

    /// The bytes or the objects in use in the pool, after recovery; `None` if they are not counted. They must return
    /// to their initial number when the index has been emptied and all epochs have passed.
    fn used(&self) -> Option<u64>;

    /// Upper bound on the wait for [`used`](TestedIndex::used) to return to its initial number: guards of other tests
    /// in the process may delay that.
    const PATIENCE: Duration = PATIENCE;

    /// Like [`OnHeap::IS_LOCK_FREE`](crate::OnHeap::IS_LOCK_FREE).
    const IS_LOCK_FREE: bool = false;
}

/// Makes a module of tests, one for each property, for each `name: Subject`. With `name: Subject; scale = 0.2`, they
/// do a fifth of the work: for variants of an index that is tested in full.
#[macro_export]
macro_rules! conformance {
    ($($name:ident: $subject:ty $(; scale = $scale:literal)?),+ $(,)?) => {$(
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            const SCALE: f64 = 1.0 $(* $scale)?;
            $crate::conformance!(@tests $subject:
                random_bytes every_byte_everywhere extreme_bytes chains_of_prefixes long_keys shared_prefixes
                dense_numbers random_numbers few_distinct_bytes wide_nodes mixed_keys
                longest_keys longest_value large_values value_lengths
                grows_and_empties_key_by_key grows_and_empties_all_at_once overwrites_leak_nothing
                hot_keys_are_linearizable neighbours_are_linearizable
                counters_add_up tokens_are_conserved racing_inserts_have_one_winner own_keys_keep_their_values
                scans_see_stable_keys borrowed_values_stay
            );
        }
    )+};
    (@tests $subject:ty: $($property:ident)+) => {$(
        #[test]
        fn $property() {
            let plan = $crate::conformance::Plan::from_env();
            $crate::conformance::$property::<$subject>(&plan.scaled(SCALE));
        }
    )+};
}

/// Makes a module of tests for each `name: Index`, an index on a heap ([`OnHeap`](crate::OnHeap)) on the machine
/// itself: the [`conformance!`](crate::conformance!) suite over pools in files, tests of known mistakes about restarts,
/// locks, memory, and damaged or full pools, and [`conformance_of_builds!`](crate::conformance_of_builds!).
#[macro_export]
macro_rules! conformance_on_heap {
    ($($name:ident: $index:ty $(; scale = $scale:literal)?),+ $(,)?) => {$(
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            $crate::conformance!(in_file: $crate::conformance::IndexInFile<$index> $(; scale = $scale)?);
            $crate::conformance_on_heap!(@tests $index:
                nodes_fill_up_and_empty_after_a_restart old_keys_stay_when_new_ones_come_after_a_restart
                restarts_follow_restarts locks_held_at_a_crash_are_free_after_it
                flags_of_locks_mean_nothing_after_a_crash memory_of_ended_threads_is_reused
                a_long_life_with_restarts damaged_pools_are_survived checks_find_damage an_empty_index_is_sound
                inserts_without_memory_leave_nothing_behind a_write_waits_for_the_room_that_recovery_makes
            );
            $crate::conformance_of_builds!(built: $index);
        }
    )+};
    (@tests $index:ty: $($property:ident)+) => {$(
        #[test]
        fn $property() {
            $crate::conformance::$property::<$index>();
        }
    )+};
}

/// Visits the entries between two bounds in the index's order: by a scan if that is the order of keys, otherwise by a
/// walk.
fn visit<'g>(
    index: &'g dyn Index,
    (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
    direction: Direction,
    guard: &'g Guard,
    each: &mut Visit<'_, 'g>,
) -> Result<(), Error> {
    match index.order() {
        Order::Keys => index.scan(lower, upper, direction, guard, each),
        Order::Ranks(_) => index.walk(lower, upper, direction, guard, each),
    }
}

/// The bounds that include everything.
const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

/// Makes a module of tests for each `name: Index`, an index that can be [built](crate::Bulk) from sorted pairs.
#[macro_export]
macro_rules! conformance_of_builds {
    ($($name:ident: $index:ty),+ $(,)?) => {$(
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            $crate::conformance_on_heap!(@tests $index:
                an_index_is_built_of_sorted_pairs an_index_is_built_of_nothing
                a_build_that_fails_leaves_nothing_behind a_build_without_memory_leaves_nothing_behind
            );
        }
    )+};
}

/// The subject is sound, empty, and uses as much as it did at `start`.
#[track_caller]
fn assert_emptied<S: TestedIndex>(subject: &S, start: Option<u64>) {
    assert_sound(subject.index(), 0);
    // Memory is freed when the epoch has advanced twice. Concurrent tests may delay that for a while.
    let begin = Instant::now();
    loop {
        heap::pin().flush();
        let used = subject.used();
        if used == start {
            return;
        }
        let what = "in use with all keys removed, and before any was inserted";
        assert!(begin.elapsed() < S::PATIENCE, "{what}: {used:?}, {start:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The check finds this many keys and no fault.
#[track_caller]
fn assert_sound(index: &dyn Index, keys: usize) {
    let faults = done(index.check(), "check");
    assert!(faults.found.is_empty(), "check found faults: {:#?}", faults.found);
    assert_eq!(faults.keys, keys as u64, "keys that check met");
}

/// The result of an operation that must not fail.
#[track_caller]
fn done<T>(result: Result<T, Error>, what: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error}"),
    }
}

/// Bytes, shortened for messages.
struct Brief<'b>(&'b [u8]);

impl std::fmt::Debug for Brief<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = &self.0[..self.0.len().min(24)];
        write!(f, "\"{}\"", shown.escape_ascii())?;
        if shown.len() < self.0.len() {
            write!(f, "… ({} bytes)", self.0.len())
        } else {
            Ok(())
        }
    }
}

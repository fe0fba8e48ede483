//! The suite detects broken indexes: indexes with one flaw each, and the properties that must detect it.

extern crate wollemi_index as index;

mod answers;
mod races;
mod unordered;

use answers::*;
use index::conformance::{self, PATIENCE, Plan, Reopen, TestedIndex};
use index::model::ModelIndex;
use index::{Action, Direction, Edit, Error, Faults, Guard, Index, Value, Visit};
use races::*;
use std::ops::Bound;
use std::panic::catch_unwind;
use std::time::{Duration, Instant};

/// The flaw of an index: overrides any of its operations, over a model.
trait Flaw: Default + Send + Sync {
    fn get<'g>(
        &self,
        model: &'g ModelIndex,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<Value<'g>>, Error> {
        model.get(key, guard)
    }
    fn multi_get<'g>(
        &self,
        model: &'g ModelIndex,
        keys: &[&[u8]],
        guard: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Error> {
        model.multi_get(keys, guard, found)
    }
    fn write(&self, model: &ModelIndex, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        model.write(key, edit)
    }
    fn scan<'g>(
        &self,
        model: &'g ModelIndex,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        model.scan(lower, upper, direction, guard, visit)
    }
    fn check(&self, model: &ModelIndex) -> Result<Faults, Error> {
        model.check()
    }
    fn reopen(&self, _model: &ModelIndex) {}
    fn used(&self, model: &ModelIndex) -> Option<u64> {
        Some(model.used())
    }
}

#[derive(Default)]
struct Double<F> {
    model: ModelIndex,
    flaw: F,
}

impl<F: Flaw> Index for Double<F> {
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, Error> {
        self.flaw.get(&self.model, key, guard)
    }
    fn multi_get<'g>(
        &'g self,
        keys: &[&[u8]],
        guard: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Error> {
        self.flaw.multi_get(&self.model, keys, guard, found)
    }
    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        self.flaw.write(&self.model, key, edit)
    }
    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        self.flaw.scan(&self.model, lower, upper, direction, guard, visit)
    }
    fn check(&self) -> Result<Faults, Error> {
        self.flaw.check(&self.model)
    }
}

impl<F: Flaw> TestedIndex for Double<F> {
    fn create() -> Self {
        Double::default()
    }
    fn index(&self) -> &dyn Index {
        self
    }
    fn reopen(self, _how: Reopen) -> Self {
        self.flaw.reopen(&self.model);
        self
    }
    fn used(&self) -> Option<u64> {
        self.flaw.used(&self.model)
    }

    /// None of their memory waits for an epoch.
    const PATIENCE: Duration = Duration::from_secs(1);
}

/// Each property detects the flaw.
macro_rules! caught {
    ($($flaw:ident as $test:ident: $($property:ident)+;)+) => {$(
        #[test]
        fn $test() {
            // A flaw shows early; and the doubles yield often, which takes long on a busy machine. A race shows only
            // when threads meet, which takes as many turns as the scheduler needs.
            $({
                let begin = Instant::now();
                let passes = || {
                    let plan = Plan::from_env().scaled(0.2);
                    catch_unwind(|| conformance::$property::<Double<$flaw>>(&plan)).is_ok()
                };
                while passes() {
                    let what = (stringify!($property), stringify!($flaw));
                    assert!(begin.elapsed() < PATIENCE, "{} did not notice {}", what.0, what.1);
                }
            })+
        }
    )+};
}

caught! {
    LostUpdate as lost_update: counters_add_up hot_keys_are_linearizable tokens_are_conserved;
    BothInsert as both_insert: racing_inserts_have_one_winner hot_keys_are_linearizable;
    DirtyRemove as dirty_remove: hot_keys_are_linearizable racing_inserts_have_one_winner;
    DirtyRead as dirty_read: hot_keys_are_linearizable;
    GoneForAMoment as gone_for_a_moment: hot_keys_are_linearizable neighbours_are_linearizable scans_see_stable_keys;
    Resurrected as resurrected: hot_keys_are_linearizable;
    WrongNeighbour as wrong_neighbour: own_keys_keep_their_values scans_see_stable_keys;
    SkippingScan as skipping_scan: scans_see_stable_keys neighbours_are_linearizable;
    RepeatingScan as repeating_scan: scans_see_stable_keys;
    TornValue as torn_value: borrowed_values_stay hot_keys_are_linearizable;
    SignedFingerprint as signed_fingerprint: every_byte_everywhere random_numbers;
    NoPrefixes as no_prefixes: chains_of_prefixes zeros_and_ones few_distinct_bytes mixed_keys;
    NoEmptyKey as no_empty_key: zeros_and_ones chains_of_prefixes;
    CutKeys as cut_keys: long_keys longest_keys;
    ExclusiveEnd as exclusive_end: dense_numbers shared_prefixes random_bytes wide_nodes;
    Unstoppable as unstoppable: dense_numbers;
    NoLimits as no_limits: longest_keys longest_value;
    NoPlaceForFortyNine as no_place_for_forty_nine: grows_and_empties_key_by_key;
    SticksToEight as sticks_to_eight: value_lengths random_numbers;
    CutValues as cut_values: large_values longest_value;
    AsksTwice as asks_twice: dense_numbers;
    MultiGetForgets as multi_get_forgets: dense_numbers;
    MultiGetRepeats as multi_get_repeats: dense_numbers;
    ForgetsOnReopening as forgets_on_reopening: grows_and_empties_all_at_once value_lengths longest_value;
    Leaks as leaks: overwrites_leak_nothing;
    Miscounts as miscounts: grows_and_empties_all_at_once racing_inserts_have_one_winner;
    Faulty as faulty: dense_numbers hot_keys_are_linearizable;
}

/// The double without a flaw passes, so the others fail because of their flaws.
#[derive(Default)]
struct Flawless;
impl Flaw for Flawless {}
index::conformance!(flawless: Double<Flawless>; scale = 0.5);
index::conformance!(without_order: unordered::Unordered; scale = 0.1);

/// Reads the key's value, separately from what follows.
fn peek(model: &ModelIndex, key: &[u8]) -> Option<Vec<u8>> {
    let guard = heap::pin();
    model.get(key, &guard).ok().flatten().map(|value| value.to_vec())
}

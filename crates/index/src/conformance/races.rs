//! Races whose outcome is visible at their end, so that they can run long without being recorded.

use super::crew::{Dawdling, crew, decode, encode};
use super::oracle::Oracle;
use super::{Brief, Family, Plan, Reopen, TestedIndex, assert_emptied, assert_sound, done, keys};
use crate::{Action, Edit, Edits, Error, Insert};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

const THREADS: usize = 4;

/// Adds one to a number in the first eight bytes of a value of a certain length.
struct Increment {
    value: Vec<u8>,
}

impl Edit for Increment {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        let count = current
            .and_then(|value| value.first_chunk())
            .map_or(0, |count| u64::from_le_bytes(*count));
        self.value[..8].copy_from_slice(&(count + 1).to_le_bytes());
        Action::Put
    }
    fn value(&self) -> &[u8] {
        &self.value
    }
}

/// Several increments.
struct Each(Vec<Increment>);

impl Edits for Each {
    fn edit(&mut self, i: usize) -> &mut dyn Edit {
        &mut self.0[i]
    }
    fn done(&mut self, _: usize, action: Result<Action, Error>) -> ControlFlow<()> {
        assert_eq!(done(action, "write_many"), Action::Put);
        ControlFlow::Continue(())
    }
}

/// Counters that all threads increment hold the sum in the end, and no two increments return the same number.
pub fn counters_add_up<S: TestedIndex>(plan: &Plan) {
    const COUNTERS: usize = 6;
    let mut random = plan.random("counters_add_up");
    let mut subject = S::create();
    let start = subject.used();
    // Every other counter is eight bytes, changed in place; the rest are written anew each time.
    let name = |counter: usize| format!("counter {counter}").into_bytes();
    let len = |counter: usize| if counter.is_multiple_of(2) { 8 } else { 24 };
    let index = subject.index();
    let given = crew(THREADS, &mut random, |_, mut random| {
        let mut given = vec![Vec::new(); COUNTERS];
        for _ in 0..plan.sized(60_000) {
            let counter = random.below(COUNTERS);
            let increment = |counter| Increment {
                value: vec![0; len(counter)],
            };
            let mut note = |counter: usize, increment: &Increment| {
                let count = increment.value.first_chunk();
                given[counter].extend(count.map(|count| u64::from_le_bytes(*count)));
            };
            if random.one_in(8) {
                let counters: Vec<_> = (0..random.below(9)).map(|_| random.below(COUNTERS)).collect();
                let keys: Vec<_> = counters.iter().map(|&counter| name(counter)).collect();
                let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                let mut edits = Each(counters.iter().map(|&counter| increment(counter)).collect());
                index.write_many(&keys, &mut edits);
                for (counter, increment) in counters.into_iter().zip(&edits.0) {
                    note(counter, increment);
                }
                continue;
            }
            let mut edit = Dawdling(increment(counter), &mut random);
            assert_eq!(done(index.write(&name(counter), &mut edit), "write"), Action::Put);
            note(counter, &edit.0);
        }
        given
    });
    subject = subject.reopen(Reopen::Crash);
    for counter in 0..COUNTERS {
        let mut all: Vec<_> = given
            .iter()
            .flat_map(|thread| thread[counter].iter().copied())
            .collect();
        for thread in &given {
            assert!(
                thread[counter].is_sorted(),
                "a thread saw counter {counter} go back"
            );
        }
        all.sort_unstable();
        assert!(
            all.iter().copied().eq(1..=all.len() as u64),
            "counter {counter}: an increment was lost"
        );
        let guard = heap::pin();
        let held = done(subject.index().get(&name(counter), &guard), "get");
        let held = held
            .as_ref()
            .and_then(|value| value.first_chunk())
            .map(|count| u64::from_le_bytes(*count));
        assert_eq!(held.unwrap_or(0), all.len() as u64, "counter {counter}");
        drop(guard);
        done(subject.index().remove(&name(counter)), "remove");
    }
    assert_emptied(&subject, start);
}

/// Removes the key and keeps its value.
#[derive(Default)]
struct Take(Option<u64>);

impl Edit for Take {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        self.0 = current.map(decode);
        Action::Remove
    }
    fn value(&self) -> &[u8] {
        &[]
    }
}

/// Threads move tokens between slots: none is lost, none exists twice.
pub fn tokens_are_conserved<S: TestedIndex>(plan: &Plan) {
    const TOKENS: u64 = 150;
    let families: [Family; 3] = [keys::fans, keys::few_bytes, keys::dense];
    let mut random = plan.random("tokens_are_conserved");
    let mut subject = S::create();
    let start = subject.used();
    for family in families {
        let slots = family(&mut random, 300);
        for (slot, token) in slots.iter().zip(0..TOKENS) {
            assert!(done(subject.index().insert(slot, &encode(token)), "insert"));
        }
        subject = subject.reopen(Reopen::Crash);
        let index = subject.index();
        crew(THREADS, &mut random, |_, mut random| {
            for _ in 0..plan.sized(25_000) {
                let slot = &slots[random.below(slots.len())];
                let mut take = Dawdling(Take::default(), &mut random);
                let took = done(index.write(slot, &mut take), "take");
                let took_it = took == Action::Remove;
                assert_eq!(
                    took_it,
                    take.0.0.is_some(),
                    "what a removal answers and what it saw"
                );
                let Some(token) = take.0.0 else { continue };
                let token = encode(token);
                // Half of the slots are free.
                while !done(index.insert(&slots[random.below(slots.len())], &token), "insert") {}
            }
        });
        subject = subject.reopen(Reopen::Crash);
        assert_sound(subject.index(), TOKENS as usize);
        let mut tokens = BTreeSet::new();
        for slot in &slots {
            let mut take = Take::default();
            done(subject.index().write(slot, &mut take), "take");
            if let Some(token) = take.0 {
                assert!(tokens.insert(token), "token {token} is there twice");
            }
        }
        assert!(tokens.iter().copied().eq(0..TOKENS), "tokens were lost");
        assert_emptied(&subject, start);
    }
}

/// All threads insert all keys, each in an order of its own: each key has one winner and keeps its value; then they
/// remove them in the same way.
pub fn racing_inserts_have_one_winner<S: TestedIndex>(plan: &Plan) {
    let families: [Family; 4] = [keys::fans, keys::few_bytes, keys::numbers, keys::chain];
    let mut random = plan.random("racing_inserts_have_one_winner");
    let mut subject = S::create();
    let start = subject.used();
    for family in families {
        let keys = family(&mut random, plan.sized(3000));
        let index = subject.index();
        // Threads follow each other closely, so that they meet at the same keys.
        let won = crew(THREADS, &mut random, |thread, mut random| {
            let mut won = vec![false; keys.len()];
            for part in (0..keys.len()).collect::<Vec<_>>().chunks(16) {
                let mut part = part.to_vec();
                random.shuffle(&mut part);
                for at in part {
                    let value = encode((at * THREADS + thread) as u64);
                    let mut edit = Dawdling(Insert(&value), &mut random);
                    won[at] = done(index.write(&keys[at], &mut edit), "insert") == Action::Put;
                }
            }
            won
        });
        subject = subject.reopen(Reopen::Crash);
        let guard = heap::pin();
        for (at, key) in keys.iter().enumerate() {
            let winners: Vec<_> = (0..THREADS).filter(|&thread| won[thread][at]).collect();
            let held = done(subject.index().get(key, &guard), "get");
            let held = held.map(|value| decode(&value) as usize);
            assert!(
                winners.len() == 1,
                "{:?}: threads {winners:?} inserted it",
                Brief(key)
            );
            assert_eq!(held, Some(at * THREADS + winners[0]), "{:?}", Brief(key));
        }
        drop(guard);
        assert_sound(subject.index(), keys.len());
        let index = subject.index();
        let removed = crew(THREADS, &mut random, |_, mut random| {
            let mut order: Vec<_> = (0..keys.len()).collect();
            if random.one_in(2) {
                random.shuffle(&mut order);
            }
            order
                .into_iter()
                .filter(|&at| done(index.remove(&keys[at]), "remove"))
                .count()
        });
        assert_eq!(
            removed.iter().sum::<usize>(),
            keys.len(),
            "each key is removed once"
        );
        assert_emptied(&subject, start);
    }
}

/// Each thread has keys of its own, between those of the others, and finds them as it left them.
pub fn own_keys_keep_their_values<S: TestedIndex>(plan: &Plan) {
    let families: [Family; 5] = [
        keys::fans,
        keys::few_bytes,
        keys::dense,
        keys::paths,
        keys::zeros_and_ones,
    ];
    let mut random = plan.random("own_keys_keep_their_values");
    let mut subject = S::create();
    let start = subject.used();
    for family in families {
        let keys = family(&mut random, plan.sized(1000));
        let mut oracles: Vec<Oracle> = (0..THREADS).map(|_| Oracle::default()).collect();
        for _ in 0..2 {
            let index = subject.index();
            oracles = crew(THREADS, &mut random, |thread, mut random| {
                let own: Vec<_> = keys.iter().skip(thread).step_by(THREADS).cloned().collect();
                let mut oracle = Oracle {
                    map: oracles[thread].map.clone(),
                    asks_again: S::IS_LOCK_FREE,
                };
                for removing in [2, 13, 3, 14] {
                    for _ in 0..own.len() * 8 {
                        oracle.step_at(index, &own[random.below(own.len())], removing, &mut random);
                    }
                }
                oracle
            });
            let all = Oracle {
                map: oracles.iter().flat_map(|oracle| oracle.map.clone()).collect(),
                ..Oracle::default()
            };
            all.compare(subject.index());
            // The threads are the first to touch the reopened index, all at once.
            subject = subject.reopen(Reopen::Crash);
        }
        let held: usize = oracles.iter().map(|oracle| oracle.map.len()).sum();
        assert_sound(subject.index(), held);
        for key in &keys {
            done(subject.index().remove(key), "remove");
        }
        assert_emptied(&subject, start);
    }
}

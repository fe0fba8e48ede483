//! A round: distributes acts to threads, opens a copy, and compares its content afterwards.

use super::acts::{ANEW, Act, Actor, Changes, text};
use super::image::Image;
use crate::calls::Calls;
use crate::random::Random;
use crate::truth::Val;
use crate::worker::{Wrong, differs};
use std::ops::ControlFlow;
use std::sync::Barrier;
use std::time::Duration;
use wollemi::{Db, RecoveryState};

/// What a round has done.
#[derive(Default)]
pub(super) struct Done {
    pub openings: u64,
    pub calls: Calls,
    pub indexes: Calls,
    pub refused: u64,
}

/// A round over a copy of the image. With 0 `threads` each act has a thread of its own.
pub(super) fn run(image: &Image, threads: usize, random: &mut Random) -> Result<Done, Wrong> {
    std::fs::copy(image.path(), image.copy_path()).map_err(|error| error.to_string())?;
    let open = |threads: usize| {
        let options = image.options().recovery_threads(threads);
        options.open(image.copy_path()).map_err(text)
    };
    let acts = draw(image, random);
    let count = if threads == 0 { acts.len() } else { threads };
    let mut hands = vec![Vec::new(); count.min(acts.len())];
    for (i, act) in acts.into_iter().enumerate() {
        hands[i % count].push(act);
    }
    let db = open(random.pick(&[0, 0, 1, 2, 4]))?;
    let (changes, mut done) = carry_out(&db, image, &hands, random)?;
    // What was left of a kill's scratch maps stays in the image, and holds nothing that counts.
    compare(&db, image, &changes)?;
    if random.one_in(4) {
        // Recovery may be under way.
        drop(db);
        let db = open(random.pick(&[0, 1, 4]))?;
        done.openings += 1;
        compare(&db, image, &changes).map_err(|wrong| format!("opened again: {wrong}"))?;
        check(&db)?;
    } else {
        check(&db)?;
        if random.one_in(4) {
            compare(&db, image, &changes).map_err(|wrong| format!("after the check: {wrong}"))?;
        }
    }
    done.openings += 1;
    done.calls.add("Db::check");
    Ok(done)
}

/// Carries out the acts of each hand in a thread of its own, all from one moment on.
fn carry_out(
    db: &Db,
    image: &Image,
    hands: &[Vec<Act>],
    random: &mut Random,
) -> Result<(Changes, Done), Wrong> {
    let barrier = &Barrier::new(hands.len());
    let answers: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = hands
            .iter()
            .map(|hand| {
                let mut actor = Actor::new(db, image, Random::new(random.next(), 0));
                scope.spawn(move || {
                    barrier.wait();
                    hand.iter().try_for_each(|act| actor.act(act))?;
                    Ok::<_, Wrong>((actor.changes, actor.calls, actor.indexes, actor.refused))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let (mut changes, mut done) = (Changes::default(), Done::default());
    for answer in answers {
        let (changed, calls, indexes, refused) = answer.map_err(|_| "a thread panicked".to_owned())??;
        changes.dropped.extend(changed.dropped);
        changes.values.extend(changed.values);
        done.calls.join(&calls);
        done.indexes.join(&indexes);
        done.refused += refused;
    }
    Ok((changes, done))
}

/// The acts of a round, in an order by chance. Maps that are dropped are not written to.
fn draw(image: &Image, random: &mut Random) -> Vec<Act> {
    let kinds = image.kinds.clone();
    let count = image.maps.len();
    let mut slots: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        slots.swap(i, random.index(i + 1));
    }
    // Half of the time as much as can be is dropped beside as little as can be that recovery traces: then a drop is
    // likely to outlast the trace.
    let kept: Vec<usize> = if random.one_in(2) {
        slots.sort_by_key(|&slot| image.maps[slot].keys.len());
        slots.drain(..1).collect()
    } else {
        slots.split_off(1 + random.index(count - 1))
    };
    let mut acts: Vec<Act> = slots
        .into_iter()
        .map(|slot| Act::Drop {
            slot,
            anew: random.one_in(3).then(|| {
                let keys = image.maps[slot].keys.len();
                (random.pick(&kinds), random.index(keys.min(3_000)))
            }),
        })
        .collect();
    let longest = random.pick(&[500, 3_000, 15_000]);
    acts.push(Act::Recover(Duration::from_micros(random.below(longest))));
    let writers = 1 + random.index(2);
    acts.extend((0..writers).map(|rest| Act::Write {
        slots: kept.clone(),
        rest,
        of: writers,
        calls: random.pick(&[100, 500, 2_000]),
    }));
    if random.one_in(2) {
        acts.push(Act::GiveBack);
    }
    if random.one_in(4) {
        acts.push(Act::Check);
    }
    if random.one_in(3) {
        acts.push(Act::Scratch {
            kind: random.pick(&kinds),
            keys: random.pick(&[100, 1_000, 3_000]),
        });
    }
    for i in (1..acts.len()).rev() {
        acts.swap(i, random.index(i + 1));
    }
    acts
}

fn check(db: &Db) -> Result<(), Wrong> {
    let check = db.check().map_err(text)?;
    let state = db.recovery_progress().state;
    if state != RecoveryState::Done {
        return Err(format!("recovery is {state}"));
    }
    if check.is_clean() {
        Ok(())
    } else {
        Err(format!("check finds: {check:?}"))
    }
}

/// Compares every key of every map with what was written.
fn compare(db: &Db, image: &Image, changes: &Changes) -> Result<(), Wrong> {
    for (slot, plan) in image.maps.iter().enumerate() {
        let found = db.find_map(&plan.name).map_err(text)?;
        let kind = found.as_ref().map_or(plan.kind, |map| map.index_kind());
        let wrong = |wrong: String| format!("map '{}' ({kind}): {wrong}", plan.name);
        let expected = match (changes.dropped.get(&slot), &found) {
            (Some(None), None) => continue,
            (Some(None), Some(_)) => return Err(wrong("it is there, though it was dropped".into())),
            (Some(Some(count)), _) => Expected::Anew(*count),
            (None, _) => Expected::Image(changes),
        };
        let map = found.ok_or_else(|| wrong("it is not there".into()))?;
        let mut numbers = (0..plan.keys.len()).filter_map(|n| Some((n, expected.value(image, slot, n)?)));
        let mut compare = |key: &[u8], value: &[u8]| match numbers.next() {
            Some((n, held)) if plan.keys[n] == key => {
                differs(Some(value), Some(held)).map(|differs| format!("key {n}: {differs}"))
            }
            other => Some(format!("{key:x?} instead of {:?}", other.map(|(n, _)| n))),
        };
        let mut differs_at = None;
        // What a hash table shows in an order of its own is sorted first.
        let mut unordered = Vec::new();
        map.reader()
            .visit(.., |key, value| {
                if map.index_kind().is_ordered() {
                    differs_at = compare(key, &value);
                } else {
                    unordered.push((key.to_vec(), value.to_vec()));
                }
                match differs_at {
                    None => ControlFlow::Continue(()),
                    Some(_) => ControlFlow::Break(()),
                }
            })
            .map_err(|error| wrong(error.to_string()))?;
        unordered.sort();
        if let Some(differs) =
            differs_at.or_else(|| unordered.iter().find_map(|(key, value)| compare(key, value)))
        {
            return Err(wrong(differs));
        }
        if let Some((n, _)) = numbers.next() {
            return Err(wrong(format!("key {n} is missing")));
        }
    }
    Ok(())
}

/// What a map must hold.
enum Expected<'c> {
    /// What the image has, except for these changes.
    Image(&'c Changes),
    /// The first keys up to this number, in a map that was made anew.
    Anew(usize),
}

impl Expected<'_> {
    fn value(&self, image: &Image, slot: usize, n: usize) -> Option<Val> {
        match self {
            Expected::Image(changes) => match changes.values.get(&(slot, n)) {
                Some(value) => *value,
                None => Some(image.value(slot, n)),
            },
            Expected::Anew(count) => (n < *count).then(|| image.value_of_version(slot, n, ANEW)),
        }
    }
}

//! A round: distributes acts to threads, opens a copy, and compares its content afterwards.

use super::acts::{Act, Actor, Changes, REPLACEMENT_VERSION, failed};
use super::image::Image;
use crate::calls::Calls;
use crate::random::Random;
use crate::truth::Val;
use crate::worker::{Wrong, differs};
use std::ops::ControlFlow;
use std::sync::Barrier;
use std::time::Duration;
use wollemi::{Db, RecoveryState};

/// The counts of a round.
#[derive(Default)]
pub(super) struct Done {
    pub openings: u64,
    pub calls: Calls,
    pub indexes: Calls,
    pub refused: u64,
}

/// Runs a round over a copy of the image. With 0 `threads` each act has a thread of its own.
pub(super) fn run(image: &Image, threads: usize, random: &mut Random) -> Result<Done, Wrong> {
    std::fs::copy(image.path(), image.copy_path()).map_err(|error| error.to_string())?;
    let open = |threads: usize| {
        let options = image.options().recovery_threads(threads);
        options.open(image.copy_path()).map_err(failed)
    };
    let acts = draw(image, random);
    let count = if threads == 0 { acts.len() } else { threads };
    let mut shares = vec![Vec::new(); count.min(acts.len())];
    for (i, act) in acts.into_iter().enumerate() {
        shares[i % count].push(act);
    }
    let db = open(random.pick(&[0, 0, 1, 2, 4]))?;
    let (changes, mut done) = carry_out(&db, image, &shares, random)?;
    // Scratch maps that a killed process has left stay in the image; their content does not matter.
    compare(&db, image, &changes)?;
    if random.one_in(4) {
        // Closes the pool, perhaps while recovery runs.
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

/// Carries out each share of the acts in a thread of its own. All threads start at the same moment.
fn carry_out(
    db: &Db,
    image: &Image,
    shares: &[Vec<Act>],
    random: &mut Random,
) -> Result<(Changes, Done), Wrong> {
    let barrier = &Barrier::new(shares.len());
    let answers: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = shares
            .iter()
            .map(|share| {
                let mut actor = Actor::new(db, image, Random::new(random.next(), 0));
                scope.spawn(move || {
                    barrier.wait();
                    share.iter().try_for_each(|act| actor.act(act))?;
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

/// Draws the acts of a round, in random order. No act writes to a map that another one drops.
fn draw(image: &Image, random: &mut Random) -> Vec<Act> {
    let kinds = image.kinds.clone();
    let count = image.maps.len();
    let mut slots: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        slots.swap(i, random.index(i + 1));
    }
    // Half of the rounds keep only the smallest map, so that drops are long and the trace is short: then a drop is
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
            replacement: random.one_in(3).then(|| {
                let keys = image.maps[slot].keys.len();
                (random.pick(&kinds), random.index(keys.min(3_000)))
            }),
        })
        .collect();
    let longest = random.pick(&[500, 3_000, 15_000]);
    acts.push(Act::Recover(Duration::from_micros(random.below(longest))));
    let writers = 1 + random.index(2);
    acts.extend((0..writers).map(|remainder| Act::Write {
        slots: kept.clone(),
        remainder,
        modulus: writers,
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
    let check = db.check().map_err(failed)?;
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
        let found = db.find_map(&plan.name).map_err(failed)?;
        let kind = found.as_ref().map_or(plan.kind, |map| map.index_kind());
        let wrong = |wrong: String| format!("map '{}' ({kind}): {wrong}", plan.name);
        let expected = match (changes.dropped.get(&slot), &found) {
            (Some(None), None) => continue,
            (Some(None), Some(_)) => return Err(wrong("the map exists, though it was dropped".into())),
            (Some(Some(count)), _) => Expected::Replacement(*count),
            (None, _) => Expected::Image(changes),
        };
        let map = found.ok_or_else(|| wrong("the map is missing".into()))?;
        let mut numbers = (0..plan.keys.len()).filter_map(|n| Some((n, expected.value(image, slot, n)?)));
        let mut compare = |key: &[u8], value: &[u8]| match numbers.next() {
            Some((n, held)) if plan.keys[n] == key => {
                differs(Some(value), Some(held)).map(|differs| format!("key {n}: {differs}"))
            }
            other => Some(format!("{key:x?} instead of {:?}", other.map(|(n, _)| n))),
        };
        let mut differs_at = None;
        // A hash table has an order of its own, so sort its entries first.
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

/// The expected content of a map.
enum Expected<'c> {
    /// The content of the image, except for these changes.
    Image(&'c Changes),
    /// This many of the first keys, in a replacement map.
    Replacement(usize),
}

impl Expected<'_> {
    fn value(&self, image: &Image, slot: usize, n: usize) -> Option<Val> {
        match self {
            Expected::Image(changes) => match changes.values.get(&(slot, n)) {
                Some(value) => *value,
                None => Some(image.value(slot, n)),
            },
            Expected::Replacement(count) => {
                (n < *count).then(|| image.value_of_version(slot, n, REPLACEMENT_VERSION))
            }
        }
    }
}

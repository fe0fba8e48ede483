//! Checks whether operations can have happened one after the other, by the graph of their dependencies (A. Adya's
//! dependency graphs; K. Kingsbury's Elle).
//!
//! An operation comes after another that
//!
//! * wrote the value that it replaces (write-write) or reads (write-read);
//! * read the value that it replaces (read-write);
//! * had ended when it began.
//!
//! If the graph has a cycle, no order explains the observations.

use std::collections::{BTreeMap, HashMap};

/// A map's number and a key.
pub type Key = (usize, u8);

/// A key's content, unique to its write. 0: no value yet.
pub type Version = u64;

/// The reads and writes of an operation.
#[derive(Clone, Debug, Default)]
pub struct Effect {
    pub reads: Vec<(Key, Version)>,
    /// Each key with the replaced version and the new one.
    pub writes: Vec<(Key, Version, Version)>,
}

/// An operation, and the ticks of a common clock at which it began and ended.
#[derive(Clone, Debug)]
pub struct Done {
    pub began: u64,
    pub ended: u64,
    pub effect: Effect,
}

/// Returns an error that describes the anomaly.
pub fn check(all: &[Done]) -> Result<(), String> {
    let (mut writers, mut replacers) = (HashMap::new(), BTreeMap::new());
    for (number, done) in all.iter().enumerate() {
        for &(key, replaced, new) in &done.effect.writes {
            if writers.insert((key, new), number).is_some() {
                return Err(format!("{key:?} was given {new} twice"));
            }
            if let Some(other) = replacers.insert((key, replaced), number) {
                let (one, two) = (&all[other], done);
                return Err(format!(
                    "a lost update of {key:?}: {replaced} was replaced by {one:?} and {two:?}"
                ));
            }
        }
    }
    // Operations first, then the clock's ticks.
    let ticks = all.iter().map(|done| done.ended + 1).max().unwrap_or(0) as usize;
    let tick = |at: u64| all.len() + at as usize;
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); all.len() + ticks];
    for at in 1..ticks {
        after[tick(at as u64 - 1)].push(tick(at as u64));
    }
    for (number, done) in all.iter().enumerate() {
        after[tick(done.began)].push(number);
        after[number].push(tick(done.ended));
        let replaced = done
            .effect
            .writes
            .iter()
            .map(|&(key, replaced, _)| (key, replaced));
        for (key, version) in done.effect.reads.iter().copied().chain(replaced) {
            match writers.get(&(key, version)) {
                Some(&writer) if writer != number => after[writer].push(number),
                None if version != 0 => {
                    return Err(format!(
                        "no transaction has written what was read of {key:?}: {version}; {done:?}"
                    ));
                }
                _ => {}
            }
        }
        for read in &done.effect.reads {
            if let Some(&replacer) = replacers.get(read)
                && replacer != number
            {
                after[number].push(replacer);
            }
        }
    }
    match circle(&after) {
        None => Ok(()),
        Some(circle) => {
            let operations = circle.iter().filter_map(|node| all.get(*node));
            let operations: Vec<_> = operations.map(|done| format!("{done:?}")).collect();
            Err(format!(
                "a cycle of {}:\n{}",
                operations.len(),
                operations.join("\n")
            ))
        }
    }
}

/// Returns a cycle in a graph, if there is one.
fn circle(after: &[Vec<usize>]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Never,
        OnPath,
        Done,
    }
    let mut seen = vec![Seen::Never; after.len()];
    for start in 0..after.len() {
        // The path from the start, and the number of edges of each node that were followed.
        let mut path = vec![(start, 0)];
        if seen[start] != Seen::Never {
            continue;
        }
        seen[start] = Seen::OnPath;
        while let Some((node, followed)) = path.last_mut() {
            let Some(&next) = after[*node].get(*followed) else {
                seen[*node] = Seen::Done;
                path.pop();
                continue;
            };
            *followed += 1;
            match seen[next] {
                Seen::Never => {
                    seen[next] = Seen::OnPath;
                    path.push((next, 0));
                }
                Seen::OnPath => {
                    let nodes = path.into_iter().map(|(node, _)| node);
                    return Some(nodes.skip_while(|node| *node != next).collect());
                }
                Seen::Done => {}
            }
        }
    }
    None
}

fn done(began: u64, ended: u64, reads: &[(u8, Version)], writes: &[(u8, Version, Version)]) -> Done {
    let reads = reads.iter().map(|&(key, version)| ((0, key), version)).collect();
    let writes = writes
        .iter()
        .map(|&(key, old, new)| ((0, key), old, new))
        .collect();
    Done {
        began,
        ended,
        effect: Effect { reads, writes },
    }
}

/// Each planted anomaly is found, and a history without one passes.
#[test]
fn planted_circles_are_found() {
    let setup = done(0, 1, &[], &[(1, 0, 10), (2, 0, 20)]);
    let finds = |what: &str, operations: &[Done]| {
        let all = [std::slice::from_ref(&setup), operations].concat();
        let wrong = check(&all).expect_err(what);
        assert!(wrong.contains(what), "{wrong}");
    };
    // Write skew: each reads both and writes one.
    let one = done(2, 5, &[(1, 10), (2, 20)], &[(1, 10, 11)]);
    let two = done(3, 4, &[(1, 10), (2, 20)], &[(2, 20, 21)]);
    finds("a cycle of 2", &[one.clone(), two]);
    // One half of a write is visible and the other is not.
    let both = done(2, 7, &[], &[(1, 10, 11), (2, 20, 21)]);
    finds("a cycle of 2", &[both, done(3, 4, &[(1, 11), (2, 20)], &[])]);
    // Two readers see two writes in different orders.
    let writes = [done(2, 9, &[], &[(1, 10, 11)]), done(3, 8, &[], &[(2, 20, 21)])];
    let reads = [
        done(4, 7, &[(1, 11), (2, 20)], &[]),
        done(5, 6, &[(1, 10), (2, 21)], &[]),
    ];
    finds("a cycle of 4", &[writes, reads].concat());
    // A value that was read had been replaced before the read began.
    finds(
        "a cycle of 2",
        &[done(2, 3, &[], &[(1, 10, 11)]), done(4, 5, &[(1, 10)], &[])],
    );
    finds("a lost update", &[one.clone(), done(3, 4, &[], &[(1, 10, 12)])]);
    finds("no transaction has written", &[done(2, 3, &[(1, 99)], &[])]);

    let other = done(6, 7, &[(1, 11), (2, 20)], &[(2, 20, 21)]);
    let late = done(3, 8, &[(1, 10), (2, 20)], &[]);
    assert_eq!(check(&[setup, one, other, late]), Ok(()));
}

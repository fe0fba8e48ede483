//! The lives of a key that is added and removed over and over.
//!
//! A *life* is what happens to a key from the write that adds it to the write that removes it. A removal leaves no
//! version, so the write that begins the next life does not name the removal that it follows, and an operation that
//! found the key absent does not name the lives between which it came. But lives of one key do not overlap, and no
//! operation finds the key absent amid a life. So often the clock knows the order: if any operation of one life, a
//! reader of one of its versions included, had ended when any operation of another began, the whole first life came
//! before the whole second one. A life without a removal is the last. Lives that neither rule orders may have either
//! order: the check then asks for none, and so reports no false anomaly.

use super::cycle::{Dependency, Graph};
use super::{Committed, Overwrite};

/// A life, or an operation that found the key absent, by the clock. Wider than the clock's numbers, so that the last
/// life ends later than all operations.
#[derive(Clone, Copy)]
pub struct Times {
    /// When the first of its operations ended.
    first_end: u128,
    /// When the last of its operations began.
    last_begin: u128,
}

impl Times {
    /// Those of a life that lasts: it comes after all others, and after each absence.
    const LAST: Times = Times {
        first_end: u128::MAX,
        last_begin: u128::MAX,
    };

    pub fn of<K>(operation: &Committed<K>) -> Times {
        Times {
            first_end: operation.ended.into(),
            last_begin: operation.began.into(),
        }
    }

    /// Returns those of what contains both.
    pub fn with(self, other: Times) -> Times {
        Times {
            first_end: self.first_end.min(other.first_end),
            last_begin: self.last_begin.max(other.last_begin),
        }
    }

    /// Returns whether this must come before another one.
    fn come_before(self, other: Times) -> bool {
        self.first_end < other.last_begin
    }
}

struct Life {
    /// The operation that added the key.
    adder: usize,
    /// The operation that removed it.
    remover: Option<usize>,
    times: Times,
}

/// Lives next to each other in time, in groups: the order is known between each two lives of different groups.
struct Group {
    lives: Vec<Life>,
    /// The first end of any life in this group and all later ones.
    first_end: u128,
    /// The last beginning of any life in this group and all earlier ones.
    last_begin: u128,
}

/// The lives of one key, in order.
pub struct Lives(Vec<Group>);

/// Two operations that both added a key, which no operation has removed since.
pub struct AddedTwice(pub [usize; 2]);

impl Lives {
    /// Finds the lives that begin with these operations. `readers` returns the times of the operations that have read a
    /// version, and `replacer` the operation that has replaced it, with its write.
    pub fn of<'h, K: 'h>(
        history: &'h [Committed<K>],
        added: &[(usize, &'h Overwrite<K>)],
        readers: impl Fn(&Overwrite<K>) -> Option<Times>,
        replacer: impl Fn(&Overwrite<K>) -> Option<(usize, &'h Overwrite<K>)>,
    ) -> Result<Lives, AddedTwice> {
        let mut lives: Vec<Life> = added
            .iter()
            .map(|&(adder, write)| live(history, adder, write, &readers, &replacer))
            .collect();
        let mut lasting = lives.iter().filter(|life| life.remover.is_none());
        if let (Some(one), Some(two)) = (lasting.next(), lasting.next()) {
            return Err(AddedTwice([one.adder, two.adder]));
        }
        // If the clock orders two lives, their sums have that order.
        lives.sort_by_key(|life| life.times.first_end.saturating_add(life.times.last_begin));
        Ok(Lives(grouped(lives)))
    }

    /// Adds the dependencies between the lives.
    pub fn order(&self, graph: &mut Graph) {
        let mut follow = |one: &Life, two: &Life| {
            if let Some(remover) = one.remover {
                graph.add(remover, two.adder, Dependency::WriteWrite);
            }
        };
        for group in &self.0 {
            for (at, one) in group.lives.iter().enumerate() {
                let others = group.lives.iter().enumerate().filter(|(other, _)| *other != at);
                let later = others.filter(|(_, two)| one.times.come_before(two.times));
                later.for_each(|(_, two)| follow(one, two));
            }
        }
        for groups in self.0.windows(2) {
            for one in &groups[0].lives {
                groups[1].lives.iter().for_each(|two| follow(one, two));
            }
        }
    }

    /// Adds the dependencies of an operation that found the key absent; `anti` is that of the life which ends the
    /// absence.
    pub fn absent<K>(&self, graph: &mut Graph, (number, reader): (usize, &Committed<K>), anti: Dependency) {
        let times = Times::of(reader);
        let before = self.0.partition_point(|group| group.first_end < times.last_begin);
        let before = before.checked_sub(1).map(|last| &self.0[last]);
        for life in before.iter().flat_map(|group| &group.lives) {
            if let (true, Some(remover)) = (life.times.come_before(times), life.remover) {
                graph.add(remover, number, Dependency::WriteRead);
            }
        }
        let after = self
            .0
            .partition_point(|group| group.last_begin <= times.first_end);
        for life in self.0.get(after).iter().flat_map(|group| &group.lives) {
            if times.come_before(life.times) {
                graph.add(number, life.adder, anti);
            }
        }
    }
}

/// Follows a key from the operation that added it to the one that removed it.
fn live<'h, K: 'h>(
    history: &'h [Committed<K>],
    adder: usize,
    write: &'h Overwrite<K>,
    readers: impl Fn(&Overwrite<K>) -> Option<Times>,
    replacer: impl Fn(&Overwrite<K>) -> Option<(usize, &'h Overwrite<K>)>,
) -> Life {
    let (mut times, mut write) = (Times::of(&history[adder]), write);
    while let Some((number, next)) = replacer(write) {
        times = readers(write).map_or(times, |read| times.with(read));
        times = times.with(Times::of(&history[number]));
        if next.is_removal() {
            let remover = Some(number);
            return Life {
                adder,
                remover,
                times,
            };
        }
        write = next;
    }
    Life {
        adder,
        remover: None,
        times: Times::LAST,
    }
}

/// Groups sorted lives: a group ends where all lives so far come before all later ones.
fn grouped(lives: Vec<Life>) -> Vec<Group> {
    let mut last_begins: Vec<u128> = lives.iter().map(|life| life.times.last_begin).collect();
    // Now the earliest of each life and all later ones.
    for at in (1..last_begins.len()).rev() {
        last_begins[at - 1] = last_begins[at - 1].min(last_begins[at]);
    }
    let mut groups: Vec<Group> = Vec::new();
    let (mut first_end, mut last_begin) = (0, 0);
    for (life, earliest_begin) in lives.into_iter().zip(last_begins) {
        if groups.is_empty() || first_end < earliest_begin {
            groups.push(Group {
                lives: Vec::new(),
                first_end: u128::MAX,
                last_begin: 0,
            });
        }
        first_end = first_end.max(life.times.first_end);
        last_begin = last_begin.max(life.times.last_begin);
        let group = groups.last_mut().expect("one was pushed before the first life");
        group.first_end = group.first_end.min(life.times.first_end);
        group.last_begin = last_begin;
        group.lives.push(life);
    }
    let mut first_end = u128::MAX;
    for group in groups.iter_mut().rev() {
        first_end = first_end.min(group.first_end);
        group.first_end = first_end;
    }
    groups
}

//! The graph of dependencies between operations, and the search for the cycle to report.

use super::AnomalyKind;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Why an operation comes after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependency {
    /// It replaced the other's value.
    WriteWrite,
    /// It read the other's value.
    WriteRead,
    /// It replaced the value that the other had read.
    ReadWrite,
    /// It added a key that the other's range read had missed.
    RangeReadWrite,
    /// It began after the other had ended.
    RealTime,
}

use Dependency::*;

impl Dependency {
    fn is_anti(self) -> bool {
        matches!(self, ReadWrite | RangeReadWrite)
    }
}

/// The sets of dependencies that are searched, one after the other: the earlier the set, the more basic the anomaly
/// that a cycle of it shows.
const LEVELS: [&[Dependency]; 4] = [
    &[WriteWrite],
    &[WriteWrite, WriteRead],
    &[WriteWrite, WriteRead, ReadWrite, RangeReadWrite],
    &[WriteWrite, WriteRead, ReadWrite, RangeReadWrite, RealTime],
];

/// Maximum number of operations of the found cycle from which a shorter one is searched.
const STARTS: usize = 64;

/// The nodes are the operations, and behind them the instants of their clock. The instants form a chain, so that real
/// time takes a number of edges in proportion to the operations.
pub struct Graph {
    operations: usize,
    after: Vec<Vec<(usize, Dependency)>>,
}

/// A cycle's nodes, each with the dependency that leads to the next.
type Cycle = Vec<(usize, Dependency)>;

impl Graph {
    /// Makes the graph of operations that began and ended at these times.
    pub fn new(times: impl Iterator<Item = (u64, u64)>) -> Graph {
        let times: Vec<_> = times.collect();
        let mut instants: Vec<u64> = times.iter().flat_map(|&(began, ended)| [began, ended]).collect();
        instants.sort_unstable();
        instants.dedup();
        let operations = times.len();
        let node = |instant: usize| operations + instant;
        let mut after = vec![Vec::new(); operations + instants.len()];
        for instant in 1..instants.len() {
            after[node(instant - 1)].push((node(instant), RealTime));
        }
        for (operation, (began, ended)) in times.into_iter().enumerate() {
            after[node(instants.partition_point(|&at| at < began))].push((operation, RealTime));
            let later = instants.partition_point(|&at| at <= ended);
            if later < instants.len() {
                after[operation].push((node(later), RealTime));
            }
        }
        Graph { operations, after }
    }

    /// Adds a dependency of `late` on `early`. An operation does not depend on itself.
    pub fn add(&mut self, early: usize, late: usize, dependency: Dependency) {
        if early != late {
            self.after[early].push((late, dependency));
        }
    }

    /// Returns the most basic anomaly that a cycle shows, with the cycle's operations.
    pub fn anomaly(&self) -> Option<(AnomalyKind, Vec<usize>)> {
        LEVELS.iter().find_map(|&level| {
            let cycle = self.some_cycle(level)?;
            let starts = cycle.iter().filter(|node| **node < self.operations);
            let cycles = starts
                .take(STARTS)
                .filter_map(|&start| self.through(start, level));
            let (_, cycle) = cycles.min_by_key(|(cost, _)| *cost)?;
            let nodes = cycle.iter().map(|(node, _)| *node);
            Some((
                name(&cycle),
                nodes.filter(|node| *node < self.operations).collect(),
            ))
        })
    }

    fn edges(&self, node: usize, level: &'static [Dependency]) -> impl Iterator<Item = (usize, Dependency)> {
        let all = self.after[node].iter().copied();
        all.filter(move |(_, dependency)| level.contains(dependency))
    }

    /// Returns the nodes of a cycle, if there is one: a search in depth.
    fn some_cycle(&self, level: &'static [Dependency]) -> Option<Vec<usize>> {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            Never,
            OnPath,
            Done,
        }
        let mut seen = vec![Seen::Never; self.after.len()];
        for start in 0..self.after.len() {
            if seen[start] != Seen::Never {
                continue;
            }
            seen[start] = Seen::OnPath;
            // The path from the start, with the edges of each node that are still to follow.
            let mut path = vec![(start, self.edges(start, level))];
            while let Some((node, edges)) = path.last_mut() {
                let Some((next, _)) = edges.next() else {
                    seen[*node] = Seen::Done;
                    path.pop();
                    continue;
                };
                match seen[next] {
                    Seen::Never => {
                        seen[next] = Seen::OnPath;
                        path.push((next, self.edges(next, level)));
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

    /// Returns the cycle through an operation with the fewest anti-dependencies and then the fewest operations, and
    /// these two numbers: Dijkstra's search.
    fn through(&self, start: usize, level: &'static [Dependency]) -> Option<((usize, usize), Cycle)> {
        let mut best = vec![(usize::MAX, usize::MAX); self.after.len()];
        let mut from = vec![None; self.after.len()];
        let mut queue = BinaryHeap::from([Reverse(((0, 0), start))]);
        while let Some(Reverse((cost, node))) = queue.pop() {
            if node == start && cost != (0, 0) {
                return Some((cost, walk_back(&from, start)));
            }
            for (next, dependency) in self.edges(node, level) {
                let is_operation = usize::from(next < self.operations);
                let reached = (cost.0 + usize::from(dependency.is_anti()), cost.1 + is_operation);
                if reached < best[next] {
                    best[next] = reached;
                    from[next] = Some((node, dependency));
                    queue.push(Reverse((reached, next)));
                }
            }
        }
        None
    }
}

fn walk_back(from: &[Option<(usize, Dependency)>], start: usize) -> Cycle {
    let mut cycle = Vec::new();
    let mut node = start;
    while let Some((before, dependency)) = from[node] {
        cycle.push((before, dependency));
        node = before;
        if node == start {
            break;
        }
    }
    cycle.reverse();
    cycle
}

fn name(cycle: &[(usize, Dependency)]) -> AnomalyKind {
    let has = |dependency| cycle.iter().any(|(_, other)| *other == dependency);
    let antis = cycle
        .iter()
        .filter(|(_, dependency)| dependency.is_anti())
        .count();
    let next = cycle.iter().cycle().skip(1);
    let mut neighbours = cycle.iter().zip(next);
    if has(RealTime) {
        AnomalyKind::RealTime
    } else if has(RangeReadWrite) {
        AnomalyKind::Phantom
    } else if antis == 0 && !has(WriteRead) {
        AnomalyKind::WriteCycle
    } else if antis == 0 {
        AnomalyKind::CircularInformation
    } else if antis == 1 {
        AnomalyKind::ReadSkew
    } else if neighbours.any(|((_, one), (_, two))| one.is_anti() && two.is_anti()) {
        AnomalyKind::WriteSkew
    } else {
        AnomalyKind::LongFork
    }
}

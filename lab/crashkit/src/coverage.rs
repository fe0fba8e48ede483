//! Coverage of the histories: operations, changes of the structure's shape, repairs after crashes.
//!
//! A change of shape is the set of objects that an operation has removed and the set that it has added. The kit derives
//! it from the structure before and after each operation, in a separate run of the history by one thread, and so
//! requires only that the structure can be traced. Only operations during which crashes are judged count.
//!
//! Steps are phases and modifications that a structure itself reports ([`Media::comes_to`](pmem::Media::comes_to))
//! because its named objects do not show them: those of a merge, of a batch and of recovery, for example.
//!
//! Repairs are the lines of source that store something after a crash and never without one.

use crate::log::{EventKind, EventLog, Site};
use std::collections::{BTreeMap, BTreeSet};

/// The named objects of a structure.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// The name and the children's offsets of each object, by its own offset. Leaves, which change with every
    /// operation, are left out.
    pub objects: BTreeMap<u64, (String, Vec<u64>)>,
    /// Allocated pages.
    pub pages: u64,
}

/// A line of source: file, line, column.
type Line = (&'static str, u32, u32);

/// What the histories reached, and how often.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// Operations, by the first word of their `Debug` text.
    pub operations: BTreeMap<String, u64>,
    /// Changes of the shape, such as `N4 -> N16`.
    pub changes: BTreeMap<String, u64>,
    /// Steps that the structure reports.
    pub steps: BTreeMap<&'static str, u64>,
    /// Operations that allocated new pages.
    pub pages: u64,
    /// Source lines that stored after a crash, with their counts.
    after: BTreeMap<Line, (Site, u64)>,
    /// Source lines that stored without a crash.
    without: BTreeSet<Line>,
}

impl Coverage {
    /// Returns the source lines that stored something after a crash and never without one, and how often.
    pub fn repairs(&self) -> impl Iterator<Item = (Site, u64)> + '_ {
        let only = self
            .after
            .iter()
            .filter(|(line, _)| !self.without.contains(*line));
        only.map(|(_, &repair)| repair)
    }

    /// Records the call sites that store in the log of a run, after a crash or without one.
    pub(crate) fn note_stores(&mut self, log: &EventLog, after_a_crash: bool) {
        for event in &log.events {
            if !matches!(event.kind, EventKind::Store { .. }) {
                continue;
            }
            let line = (event.site.file(), event.site.line(), event.site.column());
            if after_a_crash {
                self.after.entry(line).or_insert((event.site, 0)).1 += 1;
            } else {
                self.without.insert(line);
            }
        }
    }

    /// Counts the steps that a run reached from event `from` on.
    pub(crate) fn note_steps(&mut self, log: &EventLog, from: usize) {
        for (_, step) in log.steps.iter().filter(|(place, _)| *place >= from) {
            *self.steps.entry(step).or_default() += 1;
        }
    }

    /// Counts an operation, given its `Debug` text.
    pub(crate) fn note_operation(&mut self, shown: &str) {
        let word = shown.split(|letter: char| !letter.is_alphanumeric()).next();
        *self
            .operations
            .entry(word.unwrap_or_default().to_lowercase())
            .or_default() += 1;
    }

    /// Counts the change of shape that an operation made.
    pub(crate) fn note_change(&mut self, before: &Shape, after: &Shape) {
        self.pages += u64::from(after.pages > before.pages);
        if let Some(change) = change(before, after) {
            *self.changes.entry(change).or_default() += 1;
        }
    }
}

/// Describes a change of shape as `gone -> new`; `None` if nothing changed.
fn change(before: &Shape, after: &Shape) -> Option<String> {
    let mut gone = BTreeMap::new();
    for (at, (name, _)) in &before.objects {
        if after.objects.get(at).is_none_or(|(other, _)| other != name) {
            *gone.entry(name.clone()).or_default() += 1;
        }
    }
    let mut new = BTreeMap::new();
    for (at, (name, children)) in &after.objects {
        if before.objects.get(at).is_some_and(|(other, _)| other == name) {
            continue;
        }
        // A child existed before and nothing is gone: the new object was inserted above that child.
        let below = children.iter().filter_map(|child| before.objects.get(child));
        let name = match below.map(|(name, _)| name).next() {
            Some(below) if gone.is_empty() => format!("{name} above {below}"),
            _ => name.clone(),
        };
        *new.entry(name).or_default() += 1;
    }
    if gone.is_empty() && new.is_empty() {
        return None;
    }
    let (gone, new) = (listed(&gone), listed(&new));
    Some(format!("{gone} -> {new}").trim().to_owned())
}

/// Lists objects by name; several of one kind (the part before ` of `) appear as the kind's plural.
fn listed(objects: &BTreeMap<String, u64>) -> String {
    let kind = |name: &str| name.split(" of ").next().unwrap_or_default().to_owned();
    let mut kinds: BTreeMap<String, (u64, &str)> = BTreeMap::new();
    for (name, count) in objects {
        kinds.entry(kind(name)).or_insert((0, name)).0 += count;
    }
    let one = |(kind, (count, name)): (String, (u64, &str))| match count {
        1 => name.to_owned(),
        _ => format!("{kind}s"),
    };
    kinds.into_iter().map(one).collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(objects: &[(u64, &str, &[u64])]) -> Shape {
        let object = |&(at, name, children): &(u64, &str, &[u64])| (at, (name.to_owned(), children.to_vec()));
        Shape {
            objects: objects.iter().map(object).collect(),
            pages: 1,
        }
    }

    /// A change names the removed and the added objects, and the object that a new one was put above.
    #[test]
    fn changes_are_named() {
        let before = shape(&[(1, "N4", &[]), (2, "N256", &[1])]);
        assert_eq!(change(&before, &before), None);
        let grown = shape(&[(3, "N16", &[]), (2, "N256", &[3])]);
        assert_eq!(change(&before, &grown).as_deref(), Some("N4 -> N16"));
        let split = shape(&[(1, "N4", &[]), (3, "N4", &[1]), (2, "N256", &[3])]);
        assert_eq!(change(&before, &split).as_deref(), Some("-> N4 above N4"));
        let merged = shape(&[(2, "N256", &[])]);
        assert_eq!(change(&before, &merged).as_deref(), Some("N4 ->"));
        let both = shape(&[(2, "N256", &[4, 5]), (4, "N4", &[]), (5, "N4", &[])]);
        assert_eq!(change(&before, &both).as_deref(), Some("N4 -> N4s"));
    }
}

//! Coverage of the histories: operations, changes of the structure's shape, repairs after crashes.
//!
//! A change of shape is the set of objects that an operation has removed and the set that it has added. The kit derives
//! it from the structure before and after each operation, in a separate run of the history by one thread, and so
//! requires only that the structure can be traced. Only operations during which crashes are judged count.
//!
//! Steps are phases that a structure itself reports ([`Media::comes_to`](pmem::Media::comes_to)) because objects do not
//! show them: those of a merge or of a batch, and of recovery.
//!
//! Repairs are the lines of source that store something after a crash and never without one.

use crate::log::{Log, Site, What};
use std::collections::{BTreeMap, BTreeSet};

/// The objects that there are.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// By where they are: what they are called, and where their children are. Objects that come and go with every
    /// operation (leaves) are left out.
    pub objects: BTreeMap<u64, (String, Vec<u64>)>,
    /// Pages that were allocated.
    pub pages: u64,
}

/// A line of source: file, line, column.
type Line = (&'static str, u32, u32);

/// What was reached, and how often.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// Operations, by the first word of how they are shown.
    pub operations: BTreeMap<String, u64>,
    /// Changes of the shape: `N4 -> N16`.
    pub changes: BTreeMap<String, u64>,
    /// Steps of larger changes.
    pub steps: BTreeMap<&'static str, u64>,
    /// Operations that took new pages.
    pub pages: u64,
    /// Lines that have stored after a crash.
    after: BTreeMap<Line, (Site, u64)>,
    /// Lines that have stored without one.
    without: BTreeSet<Line>,
}

impl Coverage {
    /// Lines of source that have stored something after a crash and never without one, and how often.
    pub fn repairs(&self) -> impl Iterator<Item = (Site, u64)> + '_ {
        let only = self
            .after
            .iter()
            .filter(|(line, _)| !self.without.contains(*line));
        only.map(|(_, &repair)| repair)
    }

    /// Notes the call sites that store in the log of a run, after a crash or without one.
    pub(crate) fn note_stores(&mut self, log: &Log, after_a_crash: bool) {
        for event in &log.events {
            if !matches!(event.what, What::Store { .. }) {
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

    /// Notes the steps that a run has come to, from an event on.
    pub(crate) fn note_steps(&mut self, log: &Log, from: usize) {
        for (_, step) in log.steps.iter().filter(|(place, _)| *place >= from) {
            *self.steps.entry(step).or_default() += 1;
        }
    }

    /// Notes an operation, as it is shown.
    pub(crate) fn note_operation(&mut self, shown: &str) {
        let word = shown.split(|letter: char| !letter.is_alphanumeric()).next();
        *self
            .operations
            .entry(word.unwrap_or_default().to_lowercase())
            .or_default() += 1;
    }

    /// Notes what an operation has made of the shape.
    pub(crate) fn note_change(&mut self, before: &Shape, after: &Shape) {
        self.pages += u64::from(after.pages > before.pages);
        if let Some(change) = change(before, after) {
            *self.changes.entry(change).or_default() += 1;
        }
    }
}

/// What was and what is instead; `None` if that is the same.
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
        // What hangs below it was there before and not below what is gone: it has come between.
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

/// Objects by their names; of several of one kind (what comes before ` of `) only the kind.
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

    /// A change names what has gone and what is new, and what a new object was put above.
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

//! Counts of the calls of each function, of each command of the server, or of the maps of each index.

use std::collections::BTreeMap;

/// Counts by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls(BTreeMap<&'static str, u64>);

impl Calls {
    pub(crate) fn add(&mut self, name: &'static str) {
        self.add_many(name, 1);
    }

    pub(crate) fn add_many(&mut self, name: &'static str, count: u64) {
        *self.0.entry(name).or_default() += count;
    }

    /// Counts one call of each of these names.
    pub(crate) fn join_all(&mut self, names: &[&'static str]) {
        names.iter().for_each(|name| self.add(name));
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Adds the counts of `other`.
    pub(crate) fn join(&mut self, other: &Calls) {
        for (name, count) in &other.0 {
            self.add_many(name, *count);
        }
    }

    /// Returns the names, in order, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(name, count)| (*name, *count))
    }
}

//! How often each command was called.

use std::collections::BTreeMap;

/// Counts by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(BTreeMap<&'static str, u64>);

impl Calls {
    pub fn add(&mut self, name: &'static str) {
        *self.0.entry(name).or_default() += 1;
    }

    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Adds what another one has counted.
    pub fn join(&mut self, other: &Calls) {
        for (name, count) in &other.0 {
            *self.0.entry(name).or_default() += count;
        }
    }

    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

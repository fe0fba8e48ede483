//! The reference index passes the suite.

extern crate wollemi_index as index;

use index::Index;
use index::conformance::{Reopen, Subject};
use index::model::Model;

struct InMemory(Model);

impl Subject for InMemory {
    fn create() -> Self {
        InMemory(Model::new())
    }
    fn index(&self) -> &dyn Index {
        &self.0
    }
    fn reopen(self, _how: Reopen) -> Self {
        self
    }
    fn used(&self) -> Option<u64> {
        Some(self.0.used())
    }
}

index::conformance!(model: InMemory);

//! The conformance suite over every variant.

use heap::Heap;
use index::Index;
use index::conformance::{Reopen, Subject};
use pmem::{Hardware, Pool, PoolOptions};
use wollemi_roart::{Full, Roart, Variant};

struct Anonymous<V: Variant> {
    heap: Heap,
    index: Roart<Hardware, V>,
}

impl<V: Variant> Subject for Anonymous<V> {
    fn create() -> Self {
        let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect()).expect("a pool");
        let heap = Heap::new(pool).expect("a heap");
        let index = Roart::create(&heap, b"test").expect("an index");
        Anonymous { heap, index }
    }

    fn index(&self) -> &dyn Index {
        &self.index
    }

    fn reopen(self, _how: Reopen) -> Self {
        self
    }

    fn used(&self) -> Option<u64> {
        None
    }
}

index::conformance!(full: Anonymous<Full>);

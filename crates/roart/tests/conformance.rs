//! The conformance suite over pools in files, which are closed or left as by a crash, opened again and recovered while
//! the suite goes on; with the heap's accounts.

use heap::{Heap, State};
use index::Index;
use index::conformance::{Reopen, Subject};
use pmem::{Hardware, Pool, PoolOptions};
use tempfile::TempDir;
use wollemi_roart::{
    Full, KIND, Raw, Roart, Streaming, Variant, WithoutEc, WithoutInline, WithoutLc, WithoutMo, WithoutSmp,
    tracer,
};

struct InFile<V: Variant> {
    // First: dropped before the folder.
    index: Roart<Hardware, V>,
    folder: TempDir,
}

fn options() -> PoolOptions {
    PoolOptions {
        max_size: 1 << 32,
        ..PoolOptions::default()
    }
}

impl<V: Variant> Subject for InFile<V> {
    fn create() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let pool = Pool::create(folder.path().join("pool"), &options(), Hardware::detect()).expect("a pool");
        let heap = Heap::new(pool).expect("a heap");
        let index = Roart::create(&heap, b"test").expect("an index");
        InFile { index, folder }
    }

    fn index(&self) -> &dyn Index {
        &self.index
    }

    fn reopen(self, how: Reopen) -> Self {
        let InFile { index, mut folder } = self;
        if how == Reopen::Crash {
            // What a killed process leaves: the file as it is, not closed.
            let other = tempfile::tempdir().expect("a folder");
            std::fs::copy(folder.path().join("pool"), other.path().join("pool")).expect("a copy");
            folder = other;
        }
        drop(index);
        let pool = Pool::open(folder.path().join("pool"), &options(), Hardware::detect()).expect("the pool");
        let heap = Heap::new(pool).expect("the heap");
        let index = Roart::open(&heap, b"test").expect("the index").expect("the root");
        heap.recover(vec![(KIND, tracer())], 2).expect("recovery");
        InFile { index, folder }
    }

    fn used(&self) -> Option<u64> {
        let heap = self.index.heap();
        let state = heap.wait_recovered();
        assert!(matches!(state, State::Done | State::Idle), "{state:?}");
        // Not bytes: those include page ends, which depend on the pages that threads hold.
        Some(heap.stats().objects)
    }
}

index::conformance! {
    full: InFile<Full>,
    streaming: InFile<Streaming>; scale = 0.2,
    without_inline: InFile<WithoutInline>; scale = 0.5,
    raw: InFile<Raw>; scale = 0.1,
    without_ec: InFile<WithoutEc>; scale = 0.2,
    without_smp: InFile<WithoutSmp>; scale = 0.2,
    without_mo: InFile<WithoutMo>; scale = 0.2,
    without_lc: InFile<WithoutLc>; scale = 0.2,
}

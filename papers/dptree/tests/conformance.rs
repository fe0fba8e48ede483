//! The conformance suite over pools in files, which are closed or abandoned as by a crash, reopened and recovered
//! while the suite goes on; with the heap's accounts.

use heap::{Heap, RecoveryStage};
use index::Index;
use index::conformance::{Reopen, TestedIndex};
use pmem::{Hardware, Pool, PoolOptions};
use std::marker::PhantomData;
use tempfile::TempDir;
use wollemi_dptree::{DpTree, DpTreeOptions, Probing, tracer};

/// The options of a tree under test.
trait Choice {
    fn options() -> DpTreeOptions;
}

/// The default options: few merges, except for the suite's own.
struct Default;

/// Small trees that are merged all the time, by the writers.
struct Inline;

/// The same, in the background, with threads that merge and replay side by side.
struct Background;

impl Choice for Default {
    fn options() -> DpTreeOptions {
        DpTreeOptions::default()
    }
}

impl Choice for Inline {
    fn options() -> DpTreeOptions {
        DpTreeOptions {
            merge_floor: 20,
            leaf_capacity: 64,
            partitions: 3,
            log_page: 512,
            workers: 0,
            merge_partition: 4,
            ..DpTreeOptions::default()
        }
    }
}

impl Choice for Background {
    fn options() -> DpTreeOptions {
        DpTreeOptions {
            merge_floor: 50,
            leaf_capacity: 128,
            partitions: 5,
            log_page: 1024,
            workers: 3,
            merge_partition: 2,
            ..DpTreeOptions::default()
        }
    }
}

/// Small trees whose leaves are probed without fingerprints.
struct Linear;

/// Small trees whose leaves are probed only by fingerprints.
struct Fingerprints;

impl Choice for Linear {
    fn options() -> DpTreeOptions {
        DpTreeOptions {
            probing: Probing::Linear,
            ..Inline::options()
        }
    }
}

impl Choice for Fingerprints {
    fn options() -> DpTreeOptions {
        DpTreeOptions {
            probing: Probing::Fingerprints,
            leaf_capacity: 128,
            ..Inline::options()
        }
    }
}

struct InFile<C: Choice> {
    // Declared first, so that it is dropped before the folder.
    index: DpTree,
    folder: TempDir,
    choice: PhantomData<C>,
}

fn options() -> PoolOptions {
    PoolOptions {
        max_size: 1 << 32,
        ..PoolOptions::default()
    }
}

impl<C: Choice> TestedIndex for InFile<C> {
    fn create() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let pool = Pool::create(folder.path().join("pool"), &options(), Hardware::detect()).expect("a pool");
        let heap = Heap::new(pool).expect("a heap");
        let index = DpTree::create_with(&heap, b"test", C::options()).expect("an index");
        InFile {
            index,
            folder,
            choice: PhantomData,
        }
    }

    fn index(&self) -> &dyn Index {
        &self.index
    }

    fn reopen(self, how: Reopen) -> Self {
        let InFile {
            index, mut folder, ..
        } = self;
        if how == Reopen::Crash {
            // The state that a killed process leaves: the file as it is, not closed. A merge in the background must
            // not change the file during the copy.
            while index.stats().merging {
                std::thread::yield_now();
            }
            let other = tempfile::tempdir().expect("a folder");
            std::fs::copy(folder.path().join("pool"), other.path().join("pool")).expect("a copy");
            folder = other;
        }
        drop(index);
        let pool = Pool::open(folder.path().join("pool"), &options(), Hardware::detect()).expect("the pool");
        let heap = Heap::new(pool).expect("the heap");
        // Before the log is replayed, which then uses at least as many threads.
        heap.recover(vec![tracer()], 2).expect("recovery");
        let index = DpTree::open_with(&heap, b"test", C::options());
        let index = index.expect("the index").expect("the root");
        InFile {
            index,
            folder,
            choice: PhantomData,
        }
    }

    fn used(&self) -> Option<u64> {
        let heap = self.index.heap();
        let state = heap.wait_recovered();
        assert!(
            matches!(state, RecoveryStage::Done | RecoveryStage::Idle),
            "{state:?}"
        );
        self.index.settle().expect("room");
        assert_eq!(self.index.stats().failed, None);
        // Objects rather than bytes: those include page ends, which depend on the pages that threads hold.
        Some(heap.stats().objects)
    }
}

index::conformance! {
    default: InFile<Default>,
    inline: InFile<Inline>; scale = 0.3,
    background: InFile<Background>; scale = 0.3,
    linear: InFile<Linear>; scale = 0.1,
    fingerprints: InFile<Fingerprints>; scale = 0.1,
}

/// Small leaves, merged all the time.
struct Few;

impl wollemi_dptree::Choice for Few {
    fn choose(options: &mut DpTreeOptions) {
        *options = Inline::options();
    }
}

index::conformance_of_builds! {
    built: DpTree,
    built_small: DpTree<Hardware, Few>,
}

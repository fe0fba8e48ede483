//! Misuses of guards and of retirement, none of which compiles.
//!
//! Each stands below a right use that does compile and differs from it in the misuse only, so that it cannot fail
//! for another reason. (The compiler checks the error codes when its unstable features are on.)

macro_rules! misuse {
    ($(#[doc = $what:literal])* $name:ident $code:literal { $right:literal } not { $wrong:literal }) => {
        $(#[doc = $what])*
        #[doc = concat!("```\n", misuse!(@prelude), $right, "\n```")]
        #[doc = concat!("```compile_fail,", $code, "\n", misuse!(@prelude), $wrong, "\n```")]
        mod $name {}
    };
    (@prelude) => {
        "
        use pmem::{Hardware, PWord, Pool, PoolOptions, Purpose, persist_scope};
        use wollemi_heap::*;
        let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect()).unwrap();
        let heap = Heap::new(pool).unwrap();
        let swap = Swap::new(String::from(\"read by many\"));
        "
    };
}

misuse! {
    /// A guard of another collector protects nothing here.
    another_collector_s_guard "E0308" {
        "let guard = pin();
        assert_eq!(swap.load(&guard).len(), 12);"
    } not {
        "let guard = crossbeam_epoch::Collector::new().register().pin();
        assert_eq!(swap.load(&guard).len(), 12);"
    }
}

misuse! {
    /// Nor can one be made of crossbeam's own.
    made_up_guard "E0423" {
        "let guard = pin();
        assert_eq!(swap.load(&guard).len(), 12);"
    } not {
        "let guard = Guard(crossbeam_epoch::pin());
        assert_eq!(swap.load(&guard).len(), 12);"
    }
}

misuse! {
    /// What was read under a guard does not outlive it.
    read_after_the_guard "E0505" {
        "let guard = pin();
        let read = swap.load(&guard);
        assert_eq!(read.len(), 12);
        drop(guard);"
    } not {
        "let guard = pin();
        let read = swap.load(&guard);
        drop(guard);
        assert_eq!(read.len(), 12);"
    }
}

misuse! {
    /// Nor does it outlive the guard's move to another epoch.
    read_after_repinning "E0502" {
        "let mut guard = pin();
        let read = swap.load(&guard);
        assert_eq!(read.len(), 12);
        guard.repin();"
    } not {
        "let mut guard = pin();
        let read = swap.load(&guard);
        guard.repin();
        assert_eq!(read.len(), 12);"
    }
}

misuse! {
    /// Bytes that are kept for a guard go with it.
    keep_after_the_guard "E0505" {
        "let guard = pin();
        let kept = keep(&guard, Box::new([1, 2]));
        assert_eq!(kept, [1, 2]);
        drop(guard);"
    } not {
        "let guard = pin();
        let kept = keep(&guard, Box::new([1, 2]));
        drop(guard);
        assert_eq!(kept, [1, 2]);"
    }
}

misuse! {
    /// A guard pins its own thread.
    guard_on_another_thread "E0277" {
        "std::thread::scope(|threads| {
            threads.spawn(|| drop(pin()));
        });"
    } not {
        "let guard = pin();
        std::thread::scope(|threads| {
            threads.spawn(move || drop(guard));
        });"
    }
}

misuse! {
    /// The caller of a retirement promises what no type shows.
    retire_without_a_promise "E0133" {
        "persist_scope(heap.media(), Purpose::Node, |batch| {
            let object = heap.draft(PWord::new(1), 0, &batch).unwrap().flush(&batch);
            let offset = object.persisted(&batch.fence()).into_link(Default::default()).offset().unwrap();
            // SAFETY: nothing has ever led to the object.
            unsafe { heap.retire(&pin(), offset, footprint::<PWord>(0).unwrap()) };
        });"
    } not {
        "persist_scope(heap.media(), Purpose::Node, |batch| {
            let object = heap.draft(PWord::new(1), 0, &batch).unwrap().flush(&batch);
            let offset = object.persisted(&batch.fence()).into_link(Default::default()).offset().unwrap();
            heap.retire(&pin(), offset, footprint::<PWord>(0).unwrap());
        });"
    }
}

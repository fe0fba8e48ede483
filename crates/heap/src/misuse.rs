//! Misuses of guards, of objects and of roots, none of which compiles.
//!
//! Each stands below a correct use that compiles, and differs from it in the misuse only, so that it cannot fail for
//! another reason. (The compiler checks the error codes when its unstable features are on.)

macro_rules! misuse {
    ($(#[doc = $what:literal])* $name:ident $code:literal { $right:literal } not { $wrong:literal }) => {
        $(#[doc = $what])*
        #[doc = concat!("```\n", misuse!(@prelude), $right, "\n```")]
        #[doc = concat!("```compile_fail,", $code, "\n", misuse!(@prelude), $wrong, "\n```")]
        mod $name {}
    };
    (@prelude) => {
        "
        use pmem::{Hardware, Link, PWord, Pool, PoolOptions, Purpose, Tag, persist_scope};
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
    /// A guard cannot be made from crossbeam's own.
    made_up_guard "E0423" {
        "let guard = pin();
        assert_eq!(swap.load(&guard).len(), 12);"
    } not {
        "let guard = Guard(crossbeam_epoch::pin());
        assert_eq!(swap.load(&guard).len(), 12);"
    }
}

misuse! {
    /// A reference that was read under a guard does not outlive it.
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
    /// A reference that was read under a guard does not outlive the guard's move to another epoch.
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
    /// Bytes kept for a guard do not outlive it.
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
            let offset = object.persisted(&batch.fence()).into_link(Tag::default()).offset().unwrap();
            // SAFETY: nothing has ever led to the object.
            unsafe { heap.retire(&pin(), offset, footprint::<PWord>(0).unwrap()) };
        });"
    } not {
        "persist_scope(heap.media(), Purpose::Node, |batch| {
            let object = heap.draft(PWord::new(1), 0, &batch).unwrap().flush(&batch);
            let offset = object.persisted(&batch.fence()).into_link(Tag::default()).offset().unwrap();
            heap.retire(&pin(), offset, footprint::<PWord>(0).unwrap());
        });"
    }
}

misuse! {
    /// The code that reads objects promises that it only follows links, under a guard.
    read_without_a_promise "E0133" {
        "let (place, _) = heap.pool().directory();
        // SAFETY: the directory consists of words, and stays where it is.
        let _word: &PWord = unsafe { heap.access() }.at(place).unwrap();"
    } not {
        "let (place, _) = heap.pool().directory();
        let _word: &PWord = heap.access().at(place).unwrap();"
    }
}

misuse! {
    /// A heap alone gives no access to its objects.
    read_through_the_heap "E0599" {
        "let (place, _) = heap.pool().directory();
        // SAFETY: the directory consists of words, and stays where it is.
        let heap = unsafe { heap.access() };
        let _word: &PWord = heap.at(place).unwrap();"
    } not {
        "let (place, _) = heap.pool().directory();
        let _word: &PWord = heap.at(place).unwrap();"
    }
}

misuse! {
    /// The maker of a root promises that the object is of its kind.
    root_without_a_promise "E0133" {
        "persist_scope(heap.media(), Purpose::Node, |batch| {
            let object = heap.draft(PWord::new(1), 0, &batch).unwrap().flush(&batch);
            let object = object.persisted(&batch.fence());
            // SAFETY: nothing knows the kind.
            unsafe { heap.create_root(b\"word\", 77, object, Tag::default()) }.unwrap();
        });"
    } not {
        "persist_scope(heap.media(), Purpose::Node, |batch| {
            let object = heap.draft(PWord::new(1), 0, &batch).unwrap().flush(&batch);
            let object = object.persisted(&batch.fence());
            heap.create_root(b\"word\", 77, object, Tag::default()).unwrap();
        });"
    }
}

misuse! {
    /// The remover of a root promises that nothing below is in use.
    remove_root_without_a_promise "E0133" {
        "// SAFETY: there is no such root.
        unsafe { heap.remove_root(b\"word\") }.unwrap();"
    } not {
        "heap.remove_root(b\"word\").unwrap();"
    }
}

misuse! {
    /// A value attached to an object detaches in its own drop.
    detach_without_a_promise "E0133" {
        "let (place, _) = heap.pool().directory();
        // SAFETY: nothing is attached there.
        unsafe { heap.detach(place) };"
    } not {
        "let (place, _) = heap.pool().directory();
        heap.detach(place);"
    }
}

misuse! {
    /// A tracer promises that it omits no link.
    tracer_without_a_promise "E0200" {
        "struct Leaves;
        // SAFETY: words lead nowhere.
        unsafe impl Trace<Hardware> for Leaves {
            fn kind(&self) -> u32 {
                77
            }
            fn trace(&self, _: &Access, _: Link, _: &mut Vec<Link>) -> Result<u64, Error> {
                Ok(16)
            }
        }"
    } not {
        "struct Leaves;
        impl Trace<Hardware> for Leaves {
            fn kind(&self) -> u32 {
                77
            }
            fn trace(&self, _: &Access, _: Link, _: &mut Vec<Link>) -> Result<u64, Error> {
                Ok(16)
            }
        }"
    }
}

misuse! {
    /// A tracer belongs to its own kind: it does not pass for that of another.
    tracer_of_another_kind "E0308" {
        "struct Leaves;
        // SAFETY: words lead nowhere.
        unsafe impl Trace<Hardware> for Leaves {
            fn kind(&self) -> u32 {
                77
            }
            fn trace(&self, _: &Access, _: Link, _: &mut Vec<Link>) -> Result<u64, Error> {
                Ok(16)
            }
        }
        heap.recover(vec![std::sync::Arc::new(Leaves)], 1).unwrap();"
    } not {
        "struct Leaves;
        // SAFETY: words lead nowhere.
        unsafe impl Trace<Hardware> for Leaves {
            fn kind(&self) -> u32 {
                77
            }
            fn trace(&self, _: &Access, _: Link, _: &mut Vec<Link>) -> Result<u64, Error> {
                Ok(16)
            }
        }
        heap.recover(vec![(78, std::sync::Arc::new(Leaves))], 1).unwrap();"
    }
}

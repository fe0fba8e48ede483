//! Misuses of an index's results, none of which compiles. Each stands below a correct use that differs from it in the
//! misuse only.

macro_rules! misuse {
    ($(#[doc = $what:literal])* $name:ident $code:literal { $right:literal } not { $wrong:literal }) => {
        $(#[doc = $what])*
        #[doc = concat!("```\n", misuse!(@prelude), $right, "\n```")]
        #[doc = concat!("```compile_fail,", $code, "\n", misuse!(@prelude), $wrong, "\n```")]
        mod $name {}
    };
    (@prelude) => {
        "
        use heap::{Heap, pin};
        use index::{Direction, Index, OnHeap};
        use pmem::{Hardware, Pool, PoolOptions};
        use std::ops::{Bound, ControlFlow};
        use wollemi_roart::Roart;
        let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect()).unwrap();
        let heap = Heap::new(pool).unwrap();
        let index: Roart = Roart::create(&heap, b\"test\").unwrap();
        index.upsert(b\"key\", b\"longer than a word\").unwrap();
        let guard = pin();
        "
    };
}

misuse! {
    /// A value does not outlive its guard.
    value_after_the_guard "E0505" {
        "let value = index.find(b\"key\", &guard).unwrap().unwrap();
        assert_eq!(&*value, b\"longer than a word\");
        drop(guard);"
    } not {
        "let value = index.find(b\"key\", &guard).unwrap().unwrap();
        drop(guard);
        assert_eq!(&*value, b\"longer than a word\");"
    }
}

misuse! {
    /// A read needs a guard.
    read_without_a_guard "E0061" {
        "assert!(index.find(b\"key\", &guard).unwrap().is_some());"
    } not {
        "assert!(index.find(b\"key\").unwrap().is_some());"
    }
}

misuse! {
    /// A value does not outlive the index.
    value_after_the_index "E0505" {
        "let value = index.get(b\"key\", &guard).unwrap().unwrap();
        assert_eq!(&*value, b\"longer than a word\");
        drop(index);"
    } not {
        "let value = index.get(b\"key\", &guard).unwrap().unwrap();
        drop(index);
        assert_eq!(&*value, b\"longer than a word\");"
    }
}

misuse! {
    /// Entries visited by a scan do not outlive its guard.
    visited_after_the_guard "E0505" {
        "let mut seen = Vec::new();
        index
            .scan(Bound::Unbounded, Bound::Unbounded, Direction::Forward, &guard, &mut |key, _| {
                seen.push(key);
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(seen, [b\"key\"]);
        drop(guard);"
    } not {
        "let mut seen = Vec::new();
        index
            .scan(Bound::Unbounded, Bound::Unbounded, Direction::Forward, &guard, &mut |key, _| {
                seen.push(key);
                ControlFlow::Continue(())
            })
            .unwrap();
        drop(guard);
        assert_eq!(seen, [b\"key\"]);"
    }
}

//! Delegation: an index that equals another one except for a few operations.

/// Implements operations of [`Index`](crate::Index) through those of a field, inside an implementation of it.
///
/// ```
/// # use wollemi_index as index;
/// use index::{Action, Edit, Error, Index};
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// /// Counts the writes of another index.
/// struct Counted<I> {
///     index: I,
///     writes: AtomicUsize,
/// }
///
/// impl<I: Index> Index for Counted<I> {
///     index::delegate!(index: get, scan, check);
///
///     fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
///         self.writes.fetch_add(1, Ordering::Relaxed);
///         self.index.write(key, edit)
///     }
/// }
/// ```
///
/// Methods that are not named, here `multi_get` and others, keep the contract's defaults, which use `get`, `write` and
/// `scan`, or do nothing. For an index that may have no order of keys, name `order` and `walk` too.
#[macro_export]
macro_rules! delegate {
    (@get $($to:tt)+) => {
        fn get<'g>(
            &'g self,
            key: &[u8],
            guard: &'g $crate::Guard,
        ) -> ::std::result::Result<::std::option::Option<$crate::Value<'g>>, $crate::Error> {
            self.$($to)+.get(key, guard)
        }
    };
    (@multi_get $($to:tt)+) => {
        fn multi_get<'g>(
            &'g self,
            keys: &[&[u8]],
            guard: &'g $crate::Guard,
            found: &mut dyn FnMut(usize, ::std::option::Option<$crate::Value<'g>>),
        ) -> ::std::result::Result<(), $crate::Error> {
            self.$($to)+.multi_get(keys, guard, found)
        }
    };
    (@prefetch $($to:tt)+) => {
        fn prefetch(&self, keys: &[&[u8]], guard: &$crate::Guard) {
            self.$($to)+.prefetch(keys, guard);
        }
    };
    (@write $($to:tt)+) => {
        fn write(
            &self,
            key: &[u8],
            edit: &mut dyn $crate::Edit,
        ) -> ::std::result::Result<$crate::Action, $crate::Error> {
            self.$($to)+.write(key, edit)
        }
    };
    (@write_many $($to:tt)+) => {
        fn write_many(&self, keys: &[&[u8]], edits: &mut dyn $crate::Edits) {
            self.$($to)+.write_many(keys, edits);
        }
    };
    (@scan $($to:tt)+) => {
        fn scan<'g>(
            &'g self,
            lower: ::std::ops::Bound<&[u8]>,
            upper: ::std::ops::Bound<&[u8]>,
            direction: $crate::Direction,
            guard: &'g $crate::Guard,
            visit: &mut $crate::Visit<'_, 'g>,
        ) -> ::std::result::Result<(), $crate::Error> {
            self.$($to)+.scan(lower, upper, direction, guard, visit)
        }
    };
    (@order $($to:tt)+) => {
        fn order(&self) -> $crate::Order {
            self.$($to)+.order()
        }
    };
    (@walk $($to:tt)+) => {
        fn walk<'g>(
            &'g self,
            lower: ::std::ops::Bound<&[u8]>,
            upper: ::std::ops::Bound<&[u8]>,
            direction: $crate::Direction,
            guard: &'g $crate::Guard,
            visit: &mut $crate::Visit<'_, 'g>,
        ) -> ::std::result::Result<(), $crate::Error> {
            self.$($to)+.walk(lower, upper, direction, guard, visit)
        }
    };
    (@check $($to:tt)+) => {
        fn check(&self) -> ::std::result::Result<$crate::Faults, $crate::Error> {
            self.$($to)+.check()
        }
    };
    (@settle $($to:tt)+) => {
        fn settle(&self) -> ::std::result::Result<(), $crate::Error> {
            self.$($to)+.settle()
        }
    };
    (@quiesce $($to:tt)+) => {
        fn quiesce(&self) -> ::std::boxed::Box<dyn $crate::Quiesced + '_> {
            self.$($to)+.quiesce()
        }
    };
    (@merges $($to:tt)+) => {
        fn merges(&self) -> ::std::option::Option<$crate::Merges> {
            self.$($to)+.merges()
        }
    };
    (@maintain $($to:tt)+) => {
        fn maintain(&self) {
            self.$($to)+.maintain();
        }
    };
    // Internal: expands to one of the rules above for each operation, given a path of fields and the operations.
    (@each $to:tt) => {};
    (@each [$($to:tt)+] $operation:ident $($more:ident)*) => {
        $crate::delegate!(@$operation $($to)+);
        $crate::delegate!(@each [$($to)+] $($more)*);
    };
    // The form that callers write.
    ($field:tt $(.$inner:tt)* : $($operation:ident),+) => {
        $crate::delegate!(@each [$field $(.$inner)*] $($operation)+);
    };
}

//! Tests at each step of each change of a radix tree, and at each step of a read.
//!
//! A hook runs after each step of a thread (`media`); the changes are small and of every kind (`changes`). At each
//! step a crash may come (`crashes`), a reader (`readers`), or another writer (`writers`); and during a read, a
//! writer (`readers`, `turnover`).

mod changes;
mod crashes;
mod media;
mod readers;
mod turnover;
mod writers;

pub use changes::{StepChange, changes};
pub use crashes::any_step_can_be_the_last;
pub use media::{Stepping, Steps, ThreadStep, with_hook, with_waits_hook};
pub use readers::{readers_find_what_is_there_all_the_while, readers_see_no_half_of_a_write};
pub use turnover::{readers_find_no_insertion_too_early, turnovers_do_not_mislead_readers};
pub use writers::writers_do_not_mislead_writers;

/// Makes a module of tests, one for each property, for each `name: IndexWhileStepping, Index`: one radix index, on a
/// media with hooks ([`Stepping`]) and on the machine itself.
#[macro_export]
macro_rules! conformance_step_by_step {
    ($($name:ident: $stepping:ty, $index:ty;)+) => {$(
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            #[test]
            fn any_step_can_be_the_last() {
                $crate::conformance::steps::any_step_can_be_the_last::<$stepping, $index>();
            }

            $crate::conformance_step_by_step!(@tests $stepping:
                readers_see_no_half_of_a_write readers_find_what_is_there_all_the_while
                turnovers_do_not_mislead_readers readers_find_no_insertion_too_early writers_do_not_mislead_writers
            );
        }
    )+};
    (@tests $stepping:ty: $($property:ident)+) => {$(
        #[test]
        fn $property() {
            $crate::conformance::steps::$property::<$stepping>();
        }
    )+};
}

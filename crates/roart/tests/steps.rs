//! A crash, a reader, a writer, at every step of a ROART.

use index::conformance::steps::Stepping;
use pmem::Hardware;
use wollemi_roart::{Full, Roart, WithoutInline};

index::conformance_step_by_step! {
    full: Roart<Stepping, Full>, Roart<Hardware, Full>;
    // With leaves only.
    without_inline: Roart<Stepping, WithoutInline>, Roart<Hardware, WithoutInline>;
}

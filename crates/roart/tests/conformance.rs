//! The conformance suite, of every variant.

use pmem::Hardware;
use wollemi_roart::{
    Full, Raw, Roart, Streaming, WithoutEc, WithoutInline, WithoutLc, WithoutMo, WithoutSizes, WithoutSmp,
};

index::conformance_on_heap! {
    full: Roart<Hardware, Full>,
    streaming: Roart<Hardware, Streaming>; scale = 0.2,
    without_inline: Roart<Hardware, WithoutInline>; scale = 0.5,
    raw: Roart<Hardware, Raw>; scale = 0.1,
    without_ec: Roart<Hardware, WithoutEc>; scale = 0.2,
    without_smp: Roart<Hardware, WithoutSmp>; scale = 0.2,
    without_mo: Roart<Hardware, WithoutMo>; scale = 0.2,
    without_lc: Roart<Hardware, WithoutLc>; scale = 0.2,
    without_sizes: Roart<Hardware, WithoutSizes>; scale = 0.2,
}

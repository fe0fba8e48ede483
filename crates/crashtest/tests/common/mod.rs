//! ROART as a subject.

#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

pub use roart::{Full, Raw, Streaming, Variant, WithoutEc, WithoutLc, WithoutMo, WithoutSmp};

use index::Index;
use roart::{KIND, Roart, tracer};
use wollemi_crashtest::Crash;
use wollemi_crashtest::map::OfIndex;

/// Longer than what shares a line with the root's link.
const ROOT: &[u8] = &[b'r'; 100];

/// ROART in a variant.
pub fn subject<V: Variant>(name: &str) -> OfIndex {
    OfIndex::new(
        name,
        |heap| Ok(Box::new(Roart::<Crash, V>::create(heap, ROOT)?)),
        |heap| Ok(Roart::<Crash, V>::open(heap, ROOT)?.map(|index| Box::new(index) as Box<dyn Index>)),
        vec![(KIND, tracer())],
    )
}

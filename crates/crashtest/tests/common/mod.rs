//! ROART as a subject.

pub use roart::{Full, Variant};

use index::Index;
use roart::{KIND, Roart, tracer};
use wollemi_crashtest::Crash;
use wollemi_crashtest::map::OfIndex;

/// ROART in a variant.
pub fn subject<V: Variant>(name: &str) -> OfIndex {
    OfIndex::new(
        name,
        |heap| Ok(Box::new(Roart::<Crash, V>::create(heap, b"test")?)),
        |heap| Ok(Roart::<Crash, V>::open(heap, b"test")?.map(|index| Box::new(index) as Box<dyn Index>)),
        vec![(KIND, tracer())],
    )
}

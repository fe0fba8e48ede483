//! The indexes of the list as subjects.

use super::OfIndex;
use crashkit::Crash;
use index::Index;
use wollemi::indexes::{IndexKind, WithIndex};

/// Longer than what shares a line with the root's link.
const ROOT: &[u8] = &[b'r'; 100];

/// The index, as one type.
struct Boxed;

impl WithIndex for Boxed {
    type Out = Box<dyn Index>;
    fn with<I: Index + 'static>(self, index: I) -> Self::Out {
        Box::new(index)
    }
}

impl OfIndex {
    /// The index of the list that is of this kind.
    pub fn listed(kind: IndexKind) -> OfIndex {
        let subject = OfIndex::new(
            kind.name(),
            move |heap| kind.create(heap, ROOT, Boxed),
            move |heap| kind.open(heap, ROOT, Boxed),
            IndexKind::tracers::<Crash>(),
        );
        if kind.is_radix() {
            subject.named_by(IndexKind::name_object)
        } else {
            subject
        }
    }
}

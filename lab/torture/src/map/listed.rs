//! The listed indexes ([`IndexKind`]) as subjects.

use super::OfIndex;
use crashkit::Crash;
use index::Index;
use wollemi::indexes::{IndexKind, WithIndex};

/// The root's name. It is too long to share a line with the root's link.
const ROOT: &[u8] = &[b'r'; 100];

/// Boxes the index, so that all kinds have one type.
struct Boxed;

impl WithIndex for Boxed {
    type Out = Box<dyn Index>;
    fn with<I: Index + 'static>(self, index: I) -> Self::Out {
        Box::new(index)
    }
}

impl OfIndex {
    /// Returns the subject of the listed index of this kind.
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

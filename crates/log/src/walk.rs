//! Walking through fragments in order: shared by openings and scans.

use crate::Lsn;
use crate::fragment::{Fragment, Key, Kind};
use crate::geometry::{Geometry, SEGMENT_HEADER};

/// A position in the chain of fragments, and the state found on the way there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    key: Key,
    geometry: Geometry,
    /// The incarnation of the fragments at this place.
    pub(crate) incarnation: u32,
    /// The position of the next fragment.
    pub(crate) at: Lsn,
    /// The end of the last complete record.
    pub(crate) end: Lsn,
    /// The beginning of the record that is not complete yet.
    begun: Option<Lsn>,
    /// Position of the first fragment whose checksum is compared; those before are skipped.
    from: Lsn,
    /// Whether fragments are skipped: at the start of a segment, the rest of a record that began earlier.
    passing: bool,
}

/// The result of a look at the current position.
pub(crate) enum Step<'b> {
    /// The fragment that follows.
    Fragment(Fragment<'b>),
    /// No fragment that follows the last one.
    Nothing,
    /// The segment has no more; go on with the next.
    SegmentEnd,
}

/// A complete record, of one or several fragments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    pub(crate) start: Lsn,
    pub(crate) end: Lsn,
    pub(crate) kind: Kind,
}

impl Walk {
    /// Starts at the beginning of a segment. Fragments are checked from `from` on; those before only lead there.
    pub(crate) fn begin(key: Key, geometry: Geometry, number: u64, incarnation: u32, from: Lsn) -> Walk {
        let at = geometry.place(geometry.start(number));
        Walk {
            key,
            geometry,
            incarnation,
            at,
            end: at,
            begun: None,
            from,
            passing: true,
        }
    }

    /// The fragment at the current position. `bytes` are the segment's, from its start.
    pub(crate) fn look<'b>(&self, number: u64, bytes: &'b [u8]) -> Step<'b> {
        if self.geometry.segment(self.at) != number {
            return Step::SegmentEnd;
        }
        let rest = bytes
            .get(self.geometry.offset(self.at) as usize..)
            .unwrap_or_default();
        let fragment = match self.at < self.from {
            true => self.key.decode_unchecked(self.at, rest),
            false => self.key.decode(self.at, rest),
        };
        match fragment {
            Some(fragment) if self.follows(&fragment) => Step::Fragment(fragment),
            _ => Step::Nothing,
        }
    }

    /// Whether a fragment belongs to the chain, and is not a leftover of an earlier incarnation behind its end.
    fn follows(&self, fragment: &Fragment<'_>) -> bool {
        let header = &fragment.header;
        let in_order = match self.begun {
            None => header.part.begins() || self.passing,
            Some(_) => !header.part.begins(),
        };
        let opens = header.kind == Kind::Opened && header.incarnation > self.incarnation;
        in_order && (opens || header.incarnation == self.incarnation)
    }

    /// Advances behind a fragment that was looked at; returns the record that ends with it, unless it was skipped.
    pub(crate) fn pass(&mut self, fragment: &Fragment<'_>) -> Option<Whole> {
        self.incarnation = fragment.header.incarnation;
        let part = fragment.header.part;
        if part.begins() {
            self.passing = false;
            self.begun = Some(fragment.lsn);
        }
        let end = fragment.end();
        self.at = self.geometry.place(end);
        if !part.ends() {
            return None;
        }
        self.end = end;
        self.passing = false;
        let start = self.begun.take()?;
        Some(Whole {
            start,
            end,
            kind: fragment.header.kind,
        })
    }
}

/// Visits all fragments at or behind `offset` of a segment, whatever chain they belong to.
pub(crate) fn each_fragment(
    key: Key,
    geometry: Geometry,
    number: u64,
    bytes: &[u8],
    offset: u64,
    mut visit: impl FnMut(&Fragment<'_>),
) {
    let start = geometry.start(number);
    let mut offset = offset.max(SEGMENT_HEADER);
    while let Some(rest) = bytes.get(offset as usize..) {
        if rest.is_empty() {
            break;
        }
        let lsn = Lsn(start.0 + offset);
        offset += 8;
        if let Some(fragment) = key.decode(lsn, rest) {
            visit(&fragment);
            offset = geometry.offset(lsn) + crate::fragment::footprint(fragment.header.len.into());
        }
    }
}

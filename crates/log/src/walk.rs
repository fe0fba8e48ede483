//! Going through fragments in order: what openings and scans share.

use crate::fragment::{Fragment, Key, Kind};
use crate::lsn::Geometry;
use crate::{Lsn, segment};

/// A position in the chain of fragments, and what was found on the way there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    key: Key,
    geometry: Geometry,
    /// The incarnation of the fragments at this place.
    pub(crate) incarnation: u32,
    /// Where the next fragment is looked for.
    pub(crate) at: Lsn,
    /// The end of the last record that is whole.
    pub(crate) end: Lsn,
    /// Where the record began that is not whole yet.
    begun: Option<Lsn>,
    /// Where the first fragment is whose checksum is compared: those before are passed by.
    from: Lsn,
    /// At the beginning of a segment, what remains of a record that began in one before is passed by.
    passing: bool,
}

/// What is at a place.
pub(crate) enum Step<'b> {
    /// The fragment that follows.
    Fragment(Fragment<'b>),
    /// No fragment that follows the last one.
    Nothing,
    /// The segment has no more; go on with the next.
    SegmentEnd,
}

/// A record that is whole, of one or several fragments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    pub(crate) start: Lsn,
    pub(crate) end: Lsn,
    pub(crate) kind: Kind,
}

impl Walk {
    /// Begins at the beginning of a segment. Fragments are checked from `from` on; those before only lead there.
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

    /// The fragment at the present place. `bytes` are the segment's, from its start.
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

    /// Whether a fragment is of the chain, and no leftover of an earlier incarnation behind its end.
    fn follows(&self, fragment: &Fragment<'_>) -> bool {
        let header = &fragment.header;
        let in_order = match self.begun {
            None => header.part.begins() || self.passing,
            Some(_) => !header.part.begins(),
        };
        let opens = header.kind == Kind::Opened && header.incarnation > self.incarnation;
        in_order && (opens || header.incarnation == self.incarnation)
    }

    /// Goes behind a fragment that was looked at; the record that ends with it, except for one that was passed by.
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

/// The highest claim of any fragment at or behind `offset` of a segment, whatever chain it is of; `None` if there is no
/// fragment.
pub(crate) fn highest_claim(
    key: Key,
    geometry: Geometry,
    number: u64,
    bytes: &[u8],
    offset: u64,
) -> Option<Lsn> {
    let mut highest = None;
    each_fragment(key, geometry, number, bytes, offset, |fragment| {
        highest = highest.max(Some(fragment.claim()));
    });
    highest
}

/// Visits all fragments at or behind `offset` of a segment, whatever chain they are of.
pub(crate) fn each_fragment(
    key: Key,
    geometry: Geometry,
    number: u64,
    bytes: &[u8],
    offset: u64,
    mut visit: impl FnMut(&Fragment<'_>),
) {
    let start = geometry.start(number);
    let mut offset = offset.max(segment::HEADER);
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

//! The division of positions into segments, and the places of records.

use crate::{Lsn, fragment};

/// Bytes of a segment's header and the unused space behind it. Appends never dirty its page.
pub(crate) const SEGMENT_HEADER: u64 = 4096;

/// The division of positions into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Bytes of a segment: a power of two.
    pub(crate) segment_size: u32,
}

/// The places of a record's fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The start of the first fragment.
    pub(crate) start: Lsn,
    /// The end of the last one.
    pub(crate) end: Lsn,
    /// The segment of the last one.
    pub(crate) last_segment: u64,
}

impl Geometry {
    pub(crate) fn size(self) -> u64 {
        self.segment_size.into()
    }

    pub(crate) fn segment(self, lsn: Lsn) -> u64 {
        lsn.0 >> self.segment_size.trailing_zeros()
    }

    pub(crate) fn offset(self, lsn: Lsn) -> u64 {
        lsn.0 & (self.size() - 1)
    }

    /// The position of a segment's header.
    pub(crate) fn start(self, segment: u64) -> Lsn {
        Lsn(segment * self.size())
    }

    /// The start of the fragment that follows the end `lsn` of another: there, or in the next segment if the rest of
    /// this one is too short, and never in a header.
    pub(crate) fn place(self, lsn: Lsn) -> Lsn {
        let offset = self.offset(lsn);
        if offset < SEGMENT_HEADER {
            Lsn(lsn.0 - offset + SEGMENT_HEADER)
        } else if self.size() - offset < fragment::MIN {
            Lsn(lsn.0 - offset + self.size() + SEGMENT_HEADER)
        } else {
            lsn
        }
    }

    /// Bytes of a body that a fragment at `place` can hold.
    pub(crate) fn capacity(self, place: Lsn) -> u64 {
        self.size() - self.offset(place) - fragment::HEADER as u64
    }

    /// Lays out a record of `len` bytes after `end`.
    pub(crate) fn plan(self, end: Lsn, len: u64) -> Plan {
        let start = self.place(end);
        let (mut at, mut left) = (start, len);
        loop {
            let capacity = self.capacity(at);
            if left <= capacity {
                return Plan {
                    start,
                    end: Lsn(at.0 + fragment::footprint(left)),
                    last_segment: self.segment(at),
                };
            }
            left -= capacity;
            at = self.place(Lsn(at.0 + fragment::footprint(capacity)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Geometry = Geometry { segment_size: 8192 };

    /// A fragment never starts in a header, nor where its own header and eight bytes do not fit.
    #[test]
    fn places_leave_room() {
        for end in (0..5 * 8192).step_by(8) {
            let place = SMALL.place(Lsn(end));
            assert!(place.0 >= end && place.0 - end <= SEGMENT_HEADER + fragment::MIN);
            assert!(SMALL.offset(place) >= SEGMENT_HEADER);
            assert!(SMALL.capacity(place) >= 8);
            assert_eq!(SMALL.place(place), place);
        }
    }

    /// A record ends in the segment that its last byte needs, wherever it begins and however long it is.
    #[test]
    fn plans_hold_their_records() {
        for end in (4096..8192).step_by(8) {
            for len in [0, 1, 8, 100, 4064, 4072, 4080, 20_000] {
                let plan = SMALL.plan(Lsn(end), len);
                assert_eq!(plan.start, SMALL.place(Lsn(end)));
                let (mut held, mut at) = (0, plan.start);
                while SMALL.segment(at) < plan.last_segment {
                    held += SMALL.capacity(at);
                    at = SMALL.place(SMALL.start(SMALL.segment(at) + 1));
                }
                assert_eq!(plan.end.0 - at.0, fragment::footprint(len - held), "{end} {len}");
                assert!(SMALL.offset(Lsn(plan.end.0 - 1)) < 8192);
            }
        }
    }
}

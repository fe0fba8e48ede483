//! Pairs that are kept until it is known what they hang from.

use std::ops::Range;

/// Pairs in ascending order, copied.
#[derive(Debug, Default)]
pub(super) struct Bunch {
    bytes: Vec<u8>,
    pairs: Vec<Place>,
}

/// Where a pair's bytes are.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    key_end: usize,
    end: usize,
}

impl Bunch {
    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.pairs.clear();
    }

    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let end = self.bytes.len();
        self.pairs.push(Place { start, key_end, end });
    }

    fn pair(&self, i: usize) -> (&[u8], &[u8]) {
        let place = self.pairs[i];
        self.bytes[place.start..place.end].split_at(place.key_end - place.start)
    }

    pub(super) fn key(&self, i: usize) -> &[u8] {
        let place = self.pairs[i];
        &self.bytes[place.start..place.key_end]
    }

    /// Some of the pairs.
    pub(super) fn group(&self, range: Range<usize>) -> Group<'_> {
        Group {
            bunch: self,
            range,
        }
    }

    /// Drops the pairs in front of the `i`-th.
    pub(super) fn keep_from(&mut self, i: usize) {
        let Some(first) = self.pairs.get(i).copied() else {
            return self.clear();
        };
        self.bytes.drain(..first.start);
        self.pairs.drain(..i);
        for place in &mut self.pairs {
            place.start -= first.start;
            place.key_end -= first.start;
            place.end -= first.start;
        }
    }
}

/// Pairs that hang from one slot, in ascending order; at least one.
#[derive(Clone, Debug)]
pub struct Group<'b> {
    bunch: &'b Bunch,
    range: Range<usize>,
}

impl<'b> Group<'b> {
    /// The first pair.
    pub fn first(&self) -> (&'b [u8], &'b [u8]) {
        self.bunch.pair(self.range.start)
    }

    /// The pairs.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (&'b [u8], &'b [u8])> + use<'b> {
        let bunch = self.bunch;
        self.range.clone().map(|i| bunch.pair(i))
    }
}

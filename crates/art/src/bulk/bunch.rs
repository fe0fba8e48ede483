//! Pairs that are kept until their parent is known.

use std::ops::Range;

/// Pairs in ascending order, copied.
#[derive(Debug, Default)]
pub(super) struct Bunch {
    bytes: Vec<u8>,
    pairs: Vec<Place>,
    /// Number of dropped pairs at the beginning.
    dropped: usize,
}

/// The place of a pair's bytes.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    key_end: usize,
    end: usize,
}

impl Bunch {
    pub(super) fn len(&self) -> usize {
        self.pairs.len() - self.dropped
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.pairs.clear();
        self.dropped = 0;
    }

    #[inline]
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.reserve(key.len() + value.len());
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let end = self.bytes.len();
        self.pairs.push(Place { start, key_end, end });
    }

    #[inline]
    fn pair(&self, i: usize) -> (&[u8], &[u8]) {
        let place = self.pairs[self.dropped + i];
        self.bytes[place.start..place.end].split_at(place.key_end - place.start)
    }

    #[inline]
    pub(super) fn key(&self, i: usize) -> &[u8] {
        self.pair(i).0
    }

    /// A range of the pairs.
    pub(super) fn group(&self, range: Range<usize>) -> Group<'_> {
        Group { bunch: self, range }
    }

    /// Drops the pairs before the `i`-th. The rest is moved only once at least as much has been dropped.
    pub(super) fn keep_from(&mut self, i: usize) {
        self.dropped += i;
        let Some(start) = self.pairs.get(self.dropped).map(|place| place.start) else {
            return self.clear();
        };
        if self.dropped < self.len() || start < self.bytes.len() - start {
            return;
        }
        self.bytes.drain(..start);
        self.pairs.drain(..self.dropped);
        self.dropped = 0;
        for place in &mut self.pairs {
            place.start -= start;
            place.key_end -= start;
            place.end -= start;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A bunch keeps the pairs that were pushed and not dropped, however many are dropped at a time.
    #[test]
    fn a_bunch_keeps_its_pairs() {
        for step in 1..5 {
            let mut bunch = Bunch::default();
            let mut kept = Vec::new();
            for i in 0..100_u8 {
                let (key, value) = (vec![i; usize::from(i) % 7], vec![i; usize::from(i) % 3]);
                bunch.push(&key, &value);
                kept.push((key, value));
                if i % 4 == 3 {
                    let dropped = kept.len().min(step);
                    bunch.keep_from(dropped);
                    kept.drain(..dropped);
                }
                assert_eq!(bunch.len(), kept.len());
                let pairs = bunch.group(0..bunch.len()).pairs();
                assert!(pairs.eq(kept.iter().map(|(key, value)| (&key[..], &value[..]))));
            }
        }
    }
}

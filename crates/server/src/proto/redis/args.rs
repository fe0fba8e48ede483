//! The arguments of a command, as they stand in the input or kept for later.

use std::ops::Range;

/// The arguments of a command; the first is its name.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    bytes: &'a [u8],
    ranges: &'a [Range<usize>],
}

impl<'a> Args<'a> {
    /// Returns the arguments at these places of `bytes`.
    pub fn new(bytes: &'a [u8], ranges: &'a [Range<usize>]) -> Args<'a> {
        Args { bytes, ranges }
    }

    /// Returns the number of arguments.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the `i`th argument; empty if there are fewer.
    pub fn get(&self, i: usize) -> &'a [u8] {
        let bytes = self.bytes;
        self.ranges.get(i).map_or(&[], |range| &bytes[range.clone()])
    }

    /// Returns the arguments from the `i`th on, as a command.
    pub fn behind(&self, i: usize) -> Args<'a> {
        Args {
            bytes: self.bytes,
            ranges: self.ranges.get(i..).unwrap_or_default(),
        }
    }

    /// Iterates over the arguments from the `i`th on.
    pub fn from(&self, i: usize) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let bytes = self.bytes;
        let ranges: &'a [Range<usize>] = self.ranges.get(i..).unwrap_or_default();
        ranges.iter().map(move |range| &bytes[range.clone()])
    }
}

/// A command that is kept for later.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    bytes: Vec<u8>,
    ranges: Vec<Range<usize>>,
}

impl Kept {
    /// Copies a command.
    pub fn new(args: Args<'_>) -> Kept {
        let mut kept = Kept::default();
        for arg in args.from(0) {
            let begin = kept.bytes.len();
            kept.bytes.extend_from_slice(arg);
            kept.ranges.push(begin..kept.bytes.len());
        }
        kept
    }

    /// Returns the command.
    pub fn args(&self) -> Args<'_> {
        Args {
            bytes: &self.bytes,
            ranges: &self.ranges,
        }
    }

    /// Returns about how much memory it takes, in bytes.
    pub fn size(&self) -> usize {
        128 + self.bytes.len() + self.ranges.len() * size_of::<Range<usize>>()
    }
}

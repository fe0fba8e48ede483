//! The checksum of a backup of format 1, and inputs that compute it.

use crate::stream::{StreamError, TRUNCATED};
use std::io::{self, Read};

/// A variant of FNV-1a, 64 bits, over words of eight bytes (see `mix`). Behind the complete words come the remaining
/// bytes, 0 to 7, padded with zeros to a word, and the number of bytes as a word.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    hash: u64,
    word: [u8; 8],
    bytes: u64,
}

impl Sum {
    const START: Sum = Sum {
        hash: 0xcbf2_9ce4_8422_2325,
        word: [0; 8],
        bytes: 0,
    };

    fn mix(hash: u64, word: u64) -> u64 {
        let mixed = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        // The product's high bits depend on the whole word, its low bits only on the word's low bits.
        mixed ^ mixed >> 32
    }

    fn add(&mut self, bytes: &[u8]) {
        let have = (self.bytes % 8) as usize;
        self.bytes += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min((8 - have) % 8));
        self.word[have..have + first.len()].copy_from_slice(first);
        if have > 0 && have + first.len() == 8 {
            self.hash = Sum::mix(self.hash, u64::from_le_bytes(self.word));
        }
        let (words, rest) = rest.as_chunks::<8>();
        self.hash = words
            .iter()
            .fold(self.hash, |hash, word| Sum::mix(hash, u64::from_le_bytes(*word)));
        self.word[..rest.len()].copy_from_slice(rest);
    }

    pub fn get(&self) -> u64 {
        let mut word = self.word;
        word[(self.bytes % 8) as usize..].fill(0);
        Sum::mix(Sum::mix(self.hash, u64::from_le_bytes(word)), self.bytes)
    }
}

/// An input that counts its bytes and computes their checksum.
pub(super) struct Summed<R> {
    input: R,
    pub sum: Sum,
    pub bytes: u64,
}

impl<R> Summed<R> {
    pub fn new(input: R) -> Summed<R> {
        Summed {
            input,
            sum: Sum::START,
            bytes: 0,
        }
    }

    /// Counts bytes that were read from elsewhere.
    pub fn count(&mut self, bytes: &[u8]) {
        self.sum.add(bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl<R: Read> Summed<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<(), StreamError> {
        self.input.read_exact(into).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => TRUNCATED,
            _ => error.into(),
        })?;
        self.count(into);
        Ok(())
    }

    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], StreamError> {
        let mut bytes = [0; N];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    pub fn fill(&mut self, into: &mut Vec<u8>, len: usize) -> Result<(), StreamError> {
        into.clear();
        into.resize(len, 0);
        self.read(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(parts: &[&[u8]]) -> u64 {
        let mut sum = Sum::START;
        parts.iter().for_each(|part| sum.add(part));
        sum.get()
    }

    proptest! {
        /// The sum depends only on the bytes, not on how they are divided; different, more or fewer bytes have another
        /// sum.
        #[test]
        fn sums_are_of_bytes(bytes in prop::collection::vec(any::<u8>(), 1..60), cuts: [prop::sample::Index; 2], at: prop::sample::Index, bit in 0..8) {
            let mut cuts = cuts.map(|cut| cut.index(bytes.len()));
            cuts.sort_unstable();
            let (first, rest) = bytes.split_at(cuts[0]);
            let (second, third) = rest.split_at(cuts[1] - cuts[0]);
            let whole = sum(&[&bytes]);
            prop_assert_eq!(sum(&[first, second, third]), whole);
            let mut other = bytes.clone();
            other[at.index(bytes.len())] ^= 1u8 << bit;
            prop_assert_ne!(sum(&[&other]), whole);
            prop_assert_ne!(sum(&[&bytes, &[0]]), whole);
        }
    }
}

//! Write-backs and fences of each write operation, exactly (ROART Table 4), and on average (WORT Table 1).
//!
//! An operation's cost depends only on the structure, so each test builds one, and asserts both numbers. The heap's
//! own persists (one write-back and one fence per new page) are counted separately, as in the papers.

mod adaptive;
mod averages;
mod wort;

use index::conformance::{Cost, Costs};
use index::{Index, OnHeap};
use pmem::Counting;

const VALUE: &[u8] = b"12345678";

/// An eight-byte key that begins with these bytes.
fn key(bytes: &[u8]) -> Vec<u8> {
    let mut key = bytes.to_vec();
    key.resize(8, 0);
    key
}

fn insert<I: OnHeap<Media = Counting>>(costs: &Costs<I>, bytes: &[u8]) -> Cost {
    costs.cost(|index| index.insert(&key(bytes), VALUE))
}

fn remove<I: OnHeap<Media = Counting>>(costs: &Costs<I>, bytes: &[u8]) -> Cost {
    costs.cost(|index| index.remove(&key(bytes)))
}

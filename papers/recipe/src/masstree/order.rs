//! The permutation of a node: the entries that count, in order (Masstree §4.6.2).
//!
//! ```text
//!  63       60 59                                8 7     4 3   1 0
//! +-----------+-----------------------------------+-------+-----+------+
//! |     0     |  13 entries' numbers, the least   | count |  0  | mark |
//! |           |  key's first; zeros behind them   |       |     |      |
//! +-----------+-----------------------------------+-------+-----+------+
//! ```
//!
//! Masstree keeps the numbers of free entries after the others; here, entries that are not named are free.

/// Number of entries of a node.
pub(super) const ENTRIES: usize = 13;

const COUNT_SHIFT: u32 = 4;
const NUMBERS_SHIFT: u32 = 8;

/// A permutation. Whatever its bits are, it names only entries that a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order(u64);

impl Order {
    /// The first `count` entries, in their order.
    pub(super) fn first(count: usize) -> Order {
        (0..count).fold(Order(0), |order, entry| order.with(entry, entry))
    }

    #[inline(always)]
    pub(super) const fn from_word(word: u64) -> Order {
        Order(word)
    }

    /// The word to store.
    #[inline(always)]
    pub(super) const fn word(self) -> u64 {
        self.0
    }

    /// Number of entries that count.
    #[inline(always)]
    pub(super) fn len(self) -> usize {
        ((self.0 >> COUNT_SHIFT & 15) as usize).min(ENTRIES)
    }

    /// The entry in this place.
    #[inline(always)]
    pub(super) fn entry(self, place: usize) -> usize {
        ((self.0 >> (NUMBERS_SHIFT as usize + 4 * place) & 15) as usize).min(ENTRIES - 1)
    }

    /// The entries in order.
    #[inline(always)]
    pub(super) fn entries(self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator {
        (0..self.len()).map(move |place| self.entry(place))
    }

    /// The first entry that does not count.
    pub(super) fn free(self) -> Option<usize> {
        let named = self.entries().fold(0_u32, |named, entry| named | 1 << entry);
        let free = named.trailing_ones() as usize;
        (self.len() < ENTRIES && free < ENTRIES).then_some(free)
    }

    /// The permutation with one more entry, in this place.
    pub(super) fn with(self, place: usize, entry: usize) -> Order {
        let (before, behind) = self.split(place);
        self.numbers(
            before | (entry as u64) << (4 * place) | behind << 4,
            self.len() + 1,
        )
    }

    /// The permutation without the entry in this place.
    pub(super) fn without(self, place: usize) -> Order {
        let (before, behind) = self.split(place);
        self.numbers(
            before | behind >> 4 & !((1 << (4 * place)) - 1),
            self.len().saturating_sub(1),
        )
    }

    /// The permutation of only the first `count`.
    pub(super) fn truncated(self, count: usize) -> Order {
        self.numbers(self.split(count).0, count)
    }

    /// The numbers before a place and from there on.
    fn split(self, place: usize) -> (u64, u64) {
        let numbers = self.0 >> NUMBERS_SHIFT;
        let before = numbers & ((1 << (4 * place)) - 1);
        (before, numbers ^ before)
    }

    fn numbers(self, numbers: u64, count: usize) -> Order {
        Order(numbers << NUMBERS_SHIFT | (count as u64) << COUNT_SHIFT)
    }

    /// Whether it is a valid stored one: no entry twice, nothing after the last.
    pub(super) fn is_sound(self) -> bool {
        let again = self
            .entries()
            .enumerate()
            .fold(Order(0), |order, (place, entry)| order.with(place, entry));
        let named = self.entries().fold(0_u32, |named, entry| named | 1 << entry);
        again == self && named.count_ones() as usize == self.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries come and go in every place as in a list.
    #[test]
    fn it_is_a_list() {
        let mut order = Order::from_word(0);
        let mut list = Vec::new();
        let mut turn = 1_u64;
        for _ in 0..20_000 {
            turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let dice = (turn >> 33) as usize;
            match (order.free(), dice % 5) {
                (Some(free), 0..=2) => {
                    let place = dice / 5 % (list.len() + 1);
                    list.insert(place, free);
                    order = order.with(place, free);
                }
                (_, 4) if dice % 35 == 4 => {
                    let count = dice / 35 % (list.len() + 1);
                    list.truncate(count);
                    order = order.truncated(count);
                }
                _ if !list.is_empty() => {
                    let place = dice / 5 % list.len();
                    list.remove(place);
                    order = order.without(place);
                }
                _ => {}
            }
            assert!(order.is_sound(), "{order:x?}");
            assert_eq!(order.entries().collect::<Vec<_>>(), list);
            assert_eq!(order.free().is_none(), list.len() == ENTRIES);
            assert!(order.free().is_none_or(|free| !list.contains(&free)));
            assert_eq!(order.word() & 15, 0, "the mark and what is unused");
        }
        assert_eq!(
            Order::first(7).entries().collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5, 6]
        );
    }

    /// Any bits name only entries that a node has, and unused bits are detected.
    #[test]
    fn any_bits_are_an_order() {
        for word in [u64::MAX, 0xffff_ffff_ffff_ff00, 0xd0, 0x10 << 56 | 0x20] {
            let order = Order::from_word(word);
            assert!(order.entries().all(|entry| entry < ENTRIES));
            assert!(!order.is_sound());
        }
    }
}

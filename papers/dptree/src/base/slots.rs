//! Slots of a leaf: their groups, their bitmaps, and the choice of a slot for a key.

/// Slots per group.
pub(crate) const GROUP: usize = 64;

/// Groups of the largest leaf.
pub(crate) const GROUPS: usize = 4;

/// Pairs per line.
const LINE_PAIRS: usize = 4;

/// A bit for each slot.
pub(crate) type Bits = [u64; GROUPS];

pub(crate) fn has(bits: &Bits, slot: usize) -> bool {
    bits[slot / GROUP] >> (slot % GROUP) & 1 == 1
}

pub(crate) fn set(bits: &mut Bits, slot: usize) {
    bits[slot / GROUP] |= 1 << (slot % GROUP);
}

pub(crate) fn clear(bits: &mut Bits, slot: usize) {
    bits[slot / GROUP] &= !(1 << (slot % GROUP));
}

/// The slots in a bitmap, in their order.
pub(crate) fn slots_of(bits: Bits) -> impl Iterator<Item = usize> {
    (0..GROUPS * GROUP).filter(move |&slot| has(&bits, slot))
}

/// The group to which keys of this hash belong.
#[inline]
pub(crate) fn home(hash: u64, groups: usize) -> usize {
    let hash = (hash >> 8) as usize;
    // The usual case, the largest leaf, needs no division.
    match groups {
        GROUPS => hash % GROUPS,
        _ => hash % groups,
    }
}

#[inline]
pub(crate) fn print(hash: u64) -> u8 {
    hash as u8
}

/// The groups that a pair with this `home`, placed in `group`, has passed.
pub(crate) fn passed_by(home: usize, group: usize, groups: usize) -> u64 {
    let mut passed = 0;
    let mut at = home;
    while at != group {
        passed |= 1 << at;
        at = (at + 1) % groups;
    }
    passed
}

/// Chooses slots for pairs that are put into a leaf, among those that are not taken.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// Slots that must not be written to.
    taken: Bits,
    /// Lines of pairs from which slots were given out already.
    open: [u16; GROUPS],
    groups: usize,
    pub(crate) passed: u64,
}

impl Places {
    pub(crate) fn new(taken: Bits, passed: u64, groups: usize) -> Places {
        Places {
            taken,
            open: [0; GROUPS],
            groups,
            passed,
        }
    }

    /// A slot for a key of this hash: in its group if there is room; preferably in a line that is written anyway,
    /// otherwise in the line with the most room.
    pub(crate) fn take(&mut self, hash: u64) -> Option<usize> {
        let home = home(hash, self.groups);
        let mut group = home;
        while self.taken[group] == u64::MAX {
            group = (group + 1) % self.groups;
            if group == home {
                return None;
            }
        }
        let free_in = |line: usize| (!(self.taken[group] >> (line * LINE_PAIRS)) & 0xf).count_ones();
        let lines = 0..GROUP / LINE_PAIRS;
        let line = lines.filter(|&line| free_in(line) > 0).max_by_key(|&line| {
            let open = self.open[group] >> line & 1 == 1;
            (open, free_in(line), std::cmp::Reverse(line))
        })?;
        let first = (!(self.taken[group] >> (line * LINE_PAIRS))).trailing_zeros() as usize;
        let slot = line * LINE_PAIRS + first;
        self.open[group] |= 1 << line;
        self.taken[group] |= 1 << slot;
        self.passed |= passed_by(home, group, self.groups);
        Some(group * GROUP + slot)
    }
}

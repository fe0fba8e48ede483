//! Size classes: which chunk serves an object of a given length.
//!
//! ```text
//! 16, 32, 64, 96, 128, 160, 192, 224, 256      then every multiple of 64 up to 1024
//! 1280, 1536, 1792, 2048, 2112, 2560, ...      about four a doubling, up to a sixteenth of a page
//! page/16, /14, /12, /10, /8, /7, ... /3, /2   rounded down to a multiple of 64: less than 64 bytes a chunk are lost
//! ```
//!
//! 2112 bytes are an N256 (a radix node with 256 slots) with its header. An object larger than half a page takes whole
//! pages.
//!
//! I1 A class depends only on the length and the page size, and never changes: after a restart the class of a page is
//!    inferred from the length of any object in it.
//! I2 A page is carved from its start, so a chunk of class c is aligned to the largest power of two (at most 64)
//!    that divides c.

/// The longest length whose class is looked up in a table.
pub(crate) const SMALL: usize = 1024;

/// An upper bound on the number of classes, for pages of up to 128 MiB.
pub(crate) const MAX_CLASSES: usize = 96;

const SMALL_CLASSES: usize = 21;

/// Chunk sizes of the small classes.
pub(crate) const SIZES: [u32; SMALL_CLASSES] = [
    16, 32, 64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640, 704, 768, 832, 896, 960, 1024,
];

/// The class of each length, in units of 16 bytes.
const BY_LENGTH: [u8; SMALL / 16 + 1] = {
    let mut table = [0; SMALL / 16 + 1];
    let mut class = 0;
    let mut i = 0;
    while i < table.len() {
        if i * 16 > SIZES[class] as usize {
            class += 1;
        }
        table[i] = class as u8;
        i += 1;
    }
    table
};

/// The class of a length of at most [`SMALL`].
#[inline(always)]
pub(crate) fn small(len: usize) -> usize {
    usize::from(BY_LENGTH[len.div_ceil(16)])
}

/// The length of an object of type `T` with `tail` bytes after it, as the heap counts it: rounded up to `T`'s
/// alignment, so that its class keeps that alignment. `None` if it overflows.
#[inline(always)]
pub const fn footprint<T>(tail: usize) -> Option<usize> {
    match tail.checked_add(size_of::<T>()) {
        Some(len) => len.checked_next_multiple_of(align_of::<T>()),
        None => None,
    }
}

/// The classes of one page size.
#[derive(Debug)]
pub(crate) struct Classes {
    sizes: Vec<u32>,
}

impl Classes {
    pub(crate) fn new(page_size: u64) -> Classes {
        let page = u32::try_from(page_size).unwrap_or(1 << 31);
        let mut sizes = SIZES.to_vec();
        let mut base = SMALL as u32;
        'doublings: loop {
            for quarter in 1..=4 {
                let size = base + base / 4 * quarter;
                if size >= page / 16 {
                    break 'doublings;
                }
                sizes.push(size);
                if size == 2048 {
                    sizes.push(2112);
                }
            }
            base *= 2;
        }
        for parts in [16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2] {
            sizes.push(page / parts / 64 * 64);
        }
        debug_assert!(sizes.len() <= MAX_CLASSES);
        Classes { sizes }
    }

    /// Number of classes.
    pub(crate) fn count(&self) -> usize {
        self.sizes.len()
    }

    /// The chunk size of a class.
    #[inline]
    pub(crate) fn size(&self, class: usize) -> u32 {
        self.sizes[class]
    }

    /// The class for `len` bytes; `None` if only whole pages fit them.
    #[inline]
    pub(crate) fn of(&self, len: usize) -> Option<usize> {
        if len <= SMALL {
            return Some(small(len));
        }
        let class = self.sizes.partition_point(|&size| (size as usize) < len);
        (class < self.sizes.len()).then_some(class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each page size, each length gets the smallest class that holds it. The classes ascend; 64 and those above
    /// 256 are multiples of 64, the others of 16.
    #[test]
    fn each_length_has_its_least_class() {
        for shift in 16..=27 {
            let page = 1 << shift;
            let classes = Classes::new(page);
            assert!(classes.count() <= MAX_CLASSES, "{} classes", classes.count());
            assert!(classes.sizes.is_sorted_by(|a, b| a < b), "{:?}", classes.sizes);
            assert_eq!(u64::from(*classes.sizes.last().unwrap()), page / 2);
            for (class, &size) in classes.sizes.iter().enumerate() {
                assert_eq!(size % if size > 256 || size == 64 { 64 } else { 16 }, 0);
                assert_eq!(classes.of(size as usize), Some(class));
                let below = if class == 0 { 0 } else { classes.size(class - 1) };
                assert_eq!(classes.of(below as usize + 1), Some(class));
            }
            assert_eq!(classes.of(page as usize / 2 + 1), None);
        }
        let classes = Classes::new(1 << 18);
        for wanted in [576, 704, 2112] {
            assert!(classes.sizes.contains(&wanted));
        }
    }

    /// A footprint gets a class that keeps the type's alignment.
    #[test]
    fn footprints_keep_alignment() {
        #[repr(align(64))]
        struct Line([u8; 64]);
        #[repr(align(32))]
        struct Half([u8; 32]);
        let classes = Classes::new(1 << 18);
        for tail in 0..3000 {
            let len = footprint::<Line>(tail).unwrap();
            assert!(len >= size_of::<Line>() + tail);
            assert_eq!(classes.size(classes.of(len).unwrap()) % 64, 0);
            let len = footprint::<Half>(tail).unwrap();
            assert_eq!(classes.size(classes.of(len).unwrap()) % 32, 0);
        }
        assert_eq!(footprint::<Line>(usize::MAX), None);
        let _ = (Line([0; 64]).0, Half([0; 32]).0);
    }
}

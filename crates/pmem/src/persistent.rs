//! Types that may live in a pool.
//!
//! Words are [`Persistent`], and so are `u32` and `u64` (for constant fields), arrays of persistent types, and structs
//! that [`persistent!`](crate::persistent!) declares. The macro checks the trait's contract, so that no other crate
//! needs an unsafe impl of it.

/// A marker for types that may live in a pool.
///
/// [`persistent!`](crate::persistent!) implements it for a struct.
///
/// # Safety
///
/// The type is `repr(C)` or `repr(transparent)`, has no padding, no reference and no pointer, any bytes are a
/// valid value of it (a file may hold anything), every field that is written after publication is a word, and its
/// alignment is at most 64.
pub unsafe trait Persistent: 'static {
    /// Whether the type consists of words only. Anything else is read by plain loads, which must be reported to the
    /// media ([`Media::touched`](crate::Media::touched)).
    const WORDS_ONLY: bool = false;
}

// SAFETY: elements lie side by side without padding, and each is `Persistent`.
unsafe impl<T: Persistent, const N: usize> Persistent for [T; N] {
    const WORDS_ONLY: bool = T::WORDS_ONLY;
}

// SAFETY: any bytes are a valid number; a shared reference cannot change it.
unsafe impl Persistent for u64 {}
// SAFETY: as above.
unsafe impl Persistent for u32 {}

/// The value whose bytes are all zero: null links, words of zero.
#[inline]
pub fn zeroed<T: Persistent>() -> T {
    // SAFETY: any bytes are a valid value of a `Persistent` type.
    unsafe { std::mem::zeroed() }
}

/// Declares structs that may live in a pool, with their sizes in bytes, and implements [`Persistent`] for them.
///
/// ```
/// use wollemi_pmem::{PSlot, PWord, persistent};
///
/// persistent! {
///     /// A node of one line.
///     #[derive(Debug, Default)]
///     pub struct Node [size: 64, align: 64] {
///         pub key: PWord,
///         pub children: [PSlot; 7],
///     }
///
///     /// A table of as many slots as its type says.
///     struct Table<const N: usize> [size: 8 + 8 * N] {
///         count: PWord,
///         slots: [PSlot; N],
///     }
/// }
/// # let _ = Table { count: PWord::new(0), slots: [const { PSlot::null() }; 2] };
/// ```
///
/// The struct is `repr(C)`, aligned as its fields or as `align` states, which is at most 64. A struct that is unfit
/// for a pool does not compile: one with a field whose type is not `Persistent`, with padding between fields or at
/// the end, or with another size than stated. (A struct with parameters is checked where one of its instances is
/// drafted or read.)
#[macro_export]
macro_rules! persistent {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $name:ident $(<$(const $param:ident: usize),+>)?
            [size: $size:expr $(, align: $align:literal)?]
        {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty),* $(,)?
        }
    )+) => {$(
        $(#[$meta])*
        #[repr(C $(, align($align))?)]
        $vis struct $name $(<$(const $param: usize),+>)? {
            $($(#[$field_meta])* $field_vis $field: $type),*
        }

        // SAFETY: it is `repr(C)`, its fields are `Persistent`, and it has neither padding nor another alignment than
        // required: all checked here.
        unsafe impl $(<$(const $param: usize),+>)? $crate::Persistent for $name $(<$($param),+>)? {
            const WORDS_ONLY: bool = {
                assert!(size_of::<Self>() == $size, "a persistent struct has another size than it states");
                assert!(
                    size_of::<Self>() == 0 $(+ size_of::<$type>())*,
                    "a persistent struct has no padding"
                );
                assert!(
                    align_of::<Self>() <= $crate::LINE $(&& align_of::<Self>() >= align_of::<$type>())*,
                    "a persistent struct is aligned as its fields are, and to a line at most"
                );
                true $(&& <$type as $crate::Persistent>::WORDS_ONLY)*
            };
        }
        $crate::persistent!(@check $name $(<$($param)+>)?);
    )+};
    (@check $name:ident) => {
        const _: bool = <$name as $crate::Persistent>::WORDS_ONLY;
    };
    (@check $name:ident <$($param:ident)+>) => {};
}

//! Bounds of scans.
//!
//! Why scans do not take `impl RangeBounds<K>` for any `K: AsRef<[u8]>`: `..` is a range of every type, and `&key..`
//! one of keys as well as of references to them, so each such call fails with "error[E0283]: type annotations needed".
//! Nor can `KeyRange` be implemented for all of them at once ("error[E0207]: the type parameter `K` is not
//! constrained"). So it is implemented for each of Rust's ranges, and [`within`] accepts all others. (Typed maps know
//! their keys' type, and take `RangeBounds`.)

use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys: Rust's range expressions over anything that is bytes, pairs of [`Bound`]s, and references to these.
///
/// Unlike [`RangeBounds`], which leaves open whether `&key..` is a range of keys or of references to them, it never
/// needs a type annotation. [`within`] makes a `KeyRange` of any other type that implements `RangeBounds`.
///
/// ```
/// use std::ops::Bound;
///
/// let map = wollemi::Db::anonymous()?.map("letters")?;
/// map.load([("a", "1"), ("b", "2"), ("c", "3")])?;
/// let key = String::from("b");
/// assert_eq!(map.range(..).count(), 3);
/// assert_eq!(map.range("a".."b").count(), 1);
/// assert_eq!(map.range(b"a"..=b"b").count(), 2);
/// assert_eq!(map.range(&key..).count(), 2);
/// assert_eq!(map.range(..[0x63]).count(), 2);
/// assert_eq!(map.range((Bound::Excluded(&key), Bound::Unbounded)).count(), 1);
/// # Ok::<(), wollemi::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a range of keys",
    note = "ranges of strings, byte strings, arrays, slices and vectors of bytes are, and pairs of their bounds",
    note = "`wollemi::within(&range)` makes one of any other type that implements `RangeBounds`"
)]
pub trait KeyRange {
    /// Returns the lower and the upper bound.
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl KeyRange for RangeFull {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for Range<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (
            Bound::Included(self.start.as_ref()),
            Bound::Excluded(self.end.as_ref()),
        )
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeInclusive<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (
            Bound::Included(self.start().as_ref()),
            Bound::Included(self.end().as_ref()),
        )
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeFrom<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeTo<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeToInclusive<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Included(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for (Bound<K>, Bound<K>) {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.0.as_ref().map(K::as_ref), self.1.as_ref().map(K::as_ref))
    }
}

impl<R: KeyRange + ?Sized> KeyRange for &R {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        R::bounds(self)
    }
}

/// Returns the bounds of any [`RangeBounds`] of keys, which are a [`KeyRange`]: for ranges of types other than Rust's
/// own, and for code that is generic over `RangeBounds`.
///
/// ```
/// use std::ops::{Bound, RangeBounds};
///
/// /// All keys of one day, such as `2026-11-27T08:45`.
/// struct Day(String);
///
/// impl RangeBounds<str> for Day {
///     fn start_bound(&self) -> Bound<&str> {
///         Bound::Included(&self.0)
///     }
///     fn end_bound(&self) -> Bound<&str> {
///         Bound::Excluded("2026-11-28")
///     }
/// }
///
/// let map = wollemi::Db::anonymous()?.map("log")?;
/// map.load([("2026-11-26T23:59", "a"), ("2026-11-27T08:45", "b"), ("2026-11-28T00:00", "c")])?;
/// assert_eq!(map.range(wollemi::within(&Day("2026-11-27".into()))).count(), 1);
///
/// fn count<K: AsRef<[u8]> + ?Sized>(map: &wollemi::Map, keys: impl RangeBounds<K>) -> usize {
///     map.range(wollemi::within(&keys)).count()
/// }
/// assert_eq!(count::<&str>(&map, "2026-11-27"..), 2);
/// # Ok::<(), wollemi::Error>(())
/// ```
pub fn within<'k, K: AsRef<[u8]> + ?Sized + 'k>(
    keys: &'k (impl RangeBounds<K> + ?Sized),
) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    (keys.start_bound().map(K::as_ref), keys.end_bound().map(K::as_ref))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    const BYTES: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(b"b"), Bound::Excluded(b"d"));

    /// Every form of `b..d` has the same bounds, whatever holds the bytes, by value and by reference.
    #[test]
    fn all_forms_of_a_range_are_accepted() {
        fn same(keys: impl KeyRange) {
            assert_eq!(keys.bounds(), BYTES);
        }
        let (lower, upper) = (String::from("b"), String::from("d"));
        same("b".."d");
        same(b"b"..b"d");
        same(*b"b"..*b"d");
        same(&b"b"[..]..&b"d"[..]);
        same(&lower..&upper);
        same(&(&lower..&upper));
        same(vec![b'b']..vec![b'd']);
        same(Cow::Borrowed(&b"b"[..])..Cow::Borrowed(&b"d"[..]));
        same((Bound::Included("b"), Bound::Excluded("d")));
        same((Bound::Included(&lower), Bound::Excluded(&upper)));
        same(&(Bound::Included(lower.clone()), Bound::Excluded(upper.clone())));
        same(within(&("b".to_owned().."d".to_owned())));
        same(within::<&str>(&("b".."d")));
        same(within::<str>(&(Bound::Included("b"), Bound::Excluded("d"))));
        same(lower..upper);
    }

    /// Each kind of range has the bounds that the standard library gives it, alone and through `within`.
    #[test]
    fn bounds_are_those_of_the_standard_library() {
        fn same<R: RangeBounds<&'static str> + KeyRange>(keys: R) {
            let expected = (
                keys.start_bound().map(|key| key.as_bytes()),
                keys.end_bound().map(|key| key.as_bytes()),
            );
            assert_eq!(keys.bounds(), expected);
            assert_eq!(within(&keys), expected);
        }
        same(..);
        same("b".."d");
        same("b"..="d");
        same("b"..);
        same(.."d");
        same(..="d");
        same((Bound::Excluded("b"), Bound::Unbounded));
    }
}

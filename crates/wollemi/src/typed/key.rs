//! Keys of Rust types, as bytes in the same order as the keys.

use std::ops::{Bound, RangeBounds};

/// A type of keys with an encoding as bytes that preserves their order.
///
/// Unsigned integers are big-endian; signed ones too, with the sign bit flipped; `false` comes before `true`; text and
/// bytes are written as they are. A tuple is the concatenation of its parts. A part of known length, such as an
/// integer, is written unchanged. Text and bytes, unless they come last, are written with each zero byte as `00 ff` and
/// end with `00 00`.
///
/// The feature `derive` provides `#[derive(Key)]` for structs, which are written as tuples of their fields, and for
/// enums, whose first byte is the variant's number. Reordering fields or variants changes the bytes.
#[cfg_attr(
    feature = "derive",
    doc = "```
#[derive(Debug, PartialEq, wollemi::Key)]
struct Visit {
    who: String,
    day: u32,
}

let visits = wollemi::TypedMap::<Visit, u64>::new(wollemi::Db::anonymous()?.map(\"visits\")?);
for (who, day) in [(\"bob\", 3), (\"alice\", 20), (\"alice\", 7)] {
    visits.upsert(&Visit { who: who.into(), day }, &1)?;
}
let of_alice = visits.with_first(&\"alice\".to_owned()).collect::<Result<Vec<_>, _>>()?;
assert_eq!(of_alice[0].0, Visit { who: \"alice\".into(), day: 7 });
assert_eq!(of_alice.len(), 2);
# Ok::<(), wollemi::Error>(())
```"
)]
pub trait Key: Sized {
    /// Appends the key's bytes.
    fn write(&self, into: &mut Vec<u8>);

    /// Decodes the bytes as a key; returns `None` if they are not one.
    fn read(bytes: &[u8]) -> Option<Self>;

    /// Appends bytes that mark their own end, for a part of a key that others follow.
    fn write_part(&self, into: &mut Vec<u8>) {
        let start = into.len();
        self.write(into);
        escape(into, start);
    }

    /// Returns the part that `bytes` begin with, and the rest; `None` if they begin with none.
    fn read_part(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (part, rest) = unescape(bytes)?;
        Some((Self::read(&part)?, rest))
    }
}

/// Escapes the zeros from `start` on, and appends the end mark.
fn escape(bytes: &mut Vec<u8>, start: usize) {
    let zeros = bytes[start..].iter().filter(|&&byte| byte == 0).count();
    if zeros > 0 {
        let part = bytes.split_off(start);
        bytes.reserve(part.len() + zeros + 2);
        for byte in part {
            bytes.push(byte);
            if byte == 0 {
                bytes.push(0xff);
            }
        }
    }
    bytes.extend_from_slice(&[0, 0]);
}

/// Returns the unescaped part that these bytes begin with, and what follows its end mark.
fn unescape(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut part = Vec::new();
    let mut rest = bytes;
    loop {
        let zero = rest.iter().position(|&byte| byte == 0)?;
        part.extend_from_slice(&rest[..zero]);
        match rest.get(zero + 1)? {
            0 => return Some((part, &rest[zero + 2..])),
            0xff => part.push(0),
            _ => return None,
        }
        rest = &rest[zero + 2..];
    }
}

/// A form in which a key can be looked up: the key itself, text for a [`String`], a slice for bytes.
///
/// A key and its [borrowed](std::borrow::Borrow) form have the same bytes.
pub trait KeyBytes {
    /// Appends the key's bytes.
    fn write_bytes(&self, into: &mut Vec<u8>);
}

impl<K: Key> KeyBytes for K {
    fn write_bytes(&self, into: &mut Vec<u8>) {
        self.write(into);
    }
}

impl KeyBytes for str {
    fn write_bytes(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self.as_bytes());
    }
}

impl KeyBytes for [u8] {
    fn write_bytes(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self);
    }
}

/// Writes the parts of a type whose keys all have `$len` bytes in the same way as its keys.
macro_rules! of_one_length {
    ($len:expr) => {
        fn write_part(&self, into: &mut Vec<u8>) {
            self.write(into);
        }
        fn read_part(bytes: &[u8]) -> Option<(Self, &[u8])> {
            let (part, rest) = bytes.split_at_checked($len)?;
            Some((Self::read(part)?, rest))
        }
    };
}

macro_rules! integers {
    ($($unsigned:ty, $signed:ty;)+) => {$(
        impl Key for $unsigned {
            fn write(&self, into: &mut Vec<u8>) {
                into.extend_from_slice(&self.to_be_bytes());
            }
            fn read(bytes: &[u8]) -> Option<Self> {
                Some(<$unsigned>::from_be_bytes(bytes.try_into().ok()?))
            }
            of_one_length!(size_of::<$unsigned>());
        }
        impl Key for $signed {
            fn write(&self, into: &mut Vec<u8>) {
                (self.cast_unsigned() ^ <$signed>::MIN.cast_unsigned()).write(into);
            }
            fn read(bytes: &[u8]) -> Option<Self> {
                Some((<$unsigned>::read(bytes)? ^ <$signed>::MIN.cast_unsigned()).cast_signed())
            }
            of_one_length!(size_of::<$signed>());
        }
    )+};
}

integers! {
    u8, i8;
    u16, i16;
    u32, i32;
    u64, i64;
    u128, i128;
}

impl Key for bool {
    fn write(&self, into: &mut Vec<u8>) {
        into.push(u8::from(*self));
    }
    fn read(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
    of_one_length!(1);
}

impl Key for String {
    fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self.as_bytes());
    }
    fn read(bytes: &[u8]) -> Option<Self> {
        str::from_utf8(bytes).ok().map(str::to_owned)
    }
}

impl Key for Vec<u8> {
    fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self);
    }
    fn read(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }
}

impl<const N: usize> Key for [u8; N] {
    fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self);
    }
    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
    of_one_length!(N);
}

macro_rules! tuples {
    ($($($part:ident)+, $last:ident;)+) => {$(
        impl<$($part: Key,)+ $last: Key> Key for ($($part,)+ $last) {
            #[expect(non_snake_case, reason = "the parts are named after their types")]
            fn write(&self, into: &mut Vec<u8>) {
                let ($($part,)+ $last) = self;
                $($part.write_part(into);)+
                $last.write(into);
            }
            #[expect(non_snake_case, reason = "the parts are named after their types")]
            fn read(bytes: &[u8]) -> Option<Self> {
                $(let ($part, bytes) = $part::read_part(bytes)?;)+
                let $last = $last::read(bytes)?;
                Some(($($part,)+ $last))
            }
            #[expect(non_snake_case, reason = "the parts are named after their types")]
            fn write_part(&self, into: &mut Vec<u8>) {
                let ($($part,)+ $last) = self;
                $($part.write_part(into);)+
                $last.write_part(into);
            }
            #[expect(non_snake_case, reason = "the parts are named after their types")]
            fn read_part(bytes: &[u8]) -> Option<(Self, &[u8])> {
                $(let ($part, bytes) = $part::read_part(bytes)?;)+
                let ($last, bytes) = $last::read_part(bytes)?;
                Some((($($part,)+ $last), bytes))
            }
        }
    )+};
}

tuples! {
    A, B;
    A B, C;
    A B C, D;
    A B C D, E;
    A B C D E, F;
}

/// Returns the bytes of a range's bounds.
pub(crate) fn bounds<Q: KeyBytes + ?Sized>(keys: impl RangeBounds<Q>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let bytes = |bound: Bound<&Q>| bound.map(bytes_of);
    (bytes(keys.start_bound()), bytes(keys.end_bound()))
}

pub(crate) fn bytes_of(key: &(impl KeyBytes + ?Sized)) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.write_bytes(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt;

    fn in_order<K: Key + Ord + fmt::Debug>(one: &K, two: &K) {
        let (one_bytes, two_bytes) = (bytes_of(one), bytes_of(two));
        assert_eq!(K::read(&one_bytes).as_ref(), Some(one));
        assert_eq!(one_bytes.cmp(&two_bytes), one.cmp(two));

        let part = |key: &K| {
            let mut bytes = Vec::new();
            key.write_part(&mut bytes);
            bytes
        };
        let (one_part, two_part) = (part(one), part(two));
        assert_eq!(one_part.cmp(&two_part), one.cmp(two));
        let mut followed = one_part;
        followed.extend([0, 0xff]);
        let (read, rest) = K::read_part(&followed).expect("a part");
        assert_eq!((&read, rest), (one, &[0, 0xff][..]));
    }

    /// Bytes with many zeros and end marks.
    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0xfe), Just(0xff)], 0..6)
    }

    proptest! {
        /// Keys read back from their bytes, also as parts of others, and the bytes are in the keys' order.
        #[test]
        fn bytes_are_in_the_order_of_keys(
            ints: ((u8, u32), (u8, u32)),
            signed: ((i8, i64), (i8, i64)),
            large: (i128, i128),
            text: (String, String),
            mixed: ((i16, String), (i16, String)),
            behind: ((String, u16, bool), (String, u16, bool)),
            arrays: ([u8; 3], [u8; 3]),
        ) {
            in_order(&ints.0, &ints.1);
            in_order(&signed.0, &signed.1);
            in_order(&large.0, &large.1);
            in_order(&text.0, &text.1);
            in_order(&mixed.0, &mixed.1);
            in_order(&behind.0, &behind.1);
            in_order(&arrays.0, &arrays.1);
        }

        /// Bytes may contain zeros, and be prefixes of others.
        #[test]
        fn bytes_may_come_before_others(one in (hostile(), hostile(), hostile()), two in (hostile(), hostile(), hostile())) {
            in_order(&one, &two);
            in_order(&((one.0.clone(), one.1.clone()), one.2.clone()), &((two.0.clone(), two.1.clone()), two.2.clone()));
        }

        /// Bytes that are not a key's give `None`, and nothing panics.
        #[test]
        fn any_bytes_can_be_read(bytes in hostile()) {
            if let Some(key) = <(Vec<u8>, bool, String)>::read(&bytes) {
                assert_eq!(bytes_of(&key), bytes);
            }
            let _ = <(u32, [u8; 2], i8)>::read(&bytes);
        }
    }
}

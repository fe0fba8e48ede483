//! Values as reads return them.

use std::ops::Deref;

/// A value, borrowed from the pool under a guard. Values of eight bytes are updated in place, so these are copied.
#[derive(Clone, Copy)]
pub enum Value<'g> {
    /// A value of eight bytes, as it was at one moment.
    Word([u8; 8]),
    /// Any other value: these bytes do not change.
    Bytes(&'g [u8]),
}

impl Deref for Value<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Value::Word(bytes) => bytes,
            Value::Bytes(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Value<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Value<'_> {}

impl PartialEq<[u8]> for Value<'_> {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

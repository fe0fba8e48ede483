//! The forms of a map: of bytes, typed, and expiring.

use super::keys::{Bounds, known};
use index::conformance::serializability::{ABSENT, Version};
use std::time::Duration;
use wollemi::{Error, Expiring, Map, Media, Transaction, WithLife};

/// A map, used through one of its forms in transactions, and by its bytes elsewhere.
pub enum Form {
    Bytes(Map),
    #[cfg(feature = "typed")]
    Typed(wollemi::TypedMap<Vec<u8>, Value>),
    Expiring(Expiring),
}

/// The value of a typed map: its version, and more bytes.
#[cfg(feature = "typed")]
pub type Value = ([u8; 8], Vec<u8>);

pub type Found = (&'static [u8], Version);

/// A range as a transaction sees it.
pub type Range<'t> = Box<dyn DoubleEndedIterator<Item = Result<Found, Error>> + 't>;

/// Returns what follows a version in its value: sometimes more bytes, so that the value is stored differently.
fn filler(version: Version) -> Vec<u8> {
    vec![7; if version.is_multiple_of(3) { 32 } else { 0 }]
}

fn value(version: Version) -> Vec<u8> {
    [&version.to_le_bytes()[..], &filler(version)].concat()
}

/// Returns the version of a value; checks the rest of it.
fn version(bytes: &[u8]) -> Version {
    let version = u64::from_le_bytes(*bytes.first_chunk().expect("a version"));
    assert_eq!(bytes, value(version), "a torn value");
    version
}

/// Returns a life that ends long after the test, or never.
fn life(version: Version) -> Option<Duration> {
    version.is_multiple_of(2).then_some(Duration::from_secs(1 << 20))
}

#[cfg(feature = "typed")]
fn typed(version: Version) -> Value {
    (version.to_le_bytes(), filler(version))
}

#[cfg(feature = "typed")]
fn version_of_typed((bytes, rest): Value) -> Version {
    version(&[&bytes[..], &rest].concat())
}

/// Returns the version of a value and a life.
fn with_life(found: Option<WithLife>) -> Version {
    found.map_or(ABSENT, |(bytes, left)| {
        let version = version(&bytes);
        assert_eq!(left.is_some(), life(version).is_some(), "another value's life");
        version
    })
}

fn entry(entry: Result<wollemi::Entry, Error>) -> Result<Found, Error> {
    entry.map(|(key, bytes)| (known(&key), version(&bytes)))
}

#[cfg(feature = "typed")]
fn typed_entry(entry: Result<(Vec<u8>, Value), Error>) -> Result<Found, Error> {
    entry.map(|(key, value)| (known(&key), version_of_typed(value)))
}

impl Form {
    #[cfg(feature = "typed")]
    pub fn typed(map: Map) -> Form {
        Form::Typed(wollemi::TypedMap::new(map))
    }
    #[cfg(not(feature = "typed"))]
    pub fn typed(map: Map) -> Form {
        Form::Bytes(map)
    }

    pub fn expiring(map: Map) -> Form {
        Form::Expiring(Expiring::new(map))
    }

    pub fn map(&self) -> &Map {
        match self {
            Form::Bytes(map) => map,
            #[cfg(feature = "typed")]
            Form::Typed(map) => map.map(),
            Form::Expiring(map) => map.map(),
        }
    }

    pub fn is_ordered(&self) -> bool {
        self.map().index_kind().is_ordered()
    }

    /// Returns the bytes of a value.
    pub fn bytes(&self, new: Version) -> Vec<u8> {
        match self {
            Form::Bytes(_) => value(new),
            #[cfg(feature = "typed")]
            Form::Typed(map) => map.value(&typed(new)).expect("bytes"),
            Form::Expiring(map) => map.bytes(value(new), life(new)),
        }
    }

    /// Returns the version of a value's bytes.
    pub fn version(&self, bytes: Option<&[u8]>) -> Version {
        let Some(bytes) = bytes else {
            return ABSENT;
        };
        match self {
            Form::Bytes(_) => version(bytes),
            #[cfg(feature = "typed")]
            Form::Typed(_) => {
                // An array of bytes is encoded as it is.
                let version = u64::from_le_bytes(*bytes.first_chunk().expect("a version"));
                assert_eq!(bytes, self.bytes(version), "a torn value");
                version
            }
            Form::Expiring(map) => with_life(map.read(bytes).expect("a header")),
        }
    }

    pub fn get_in(&self, tx: &Transaction<'_, impl Media>, key: &[u8]) -> Result<Version, Error> {
        match self {
            Form::Bytes(map) => Ok(tx.get(map, key)?.map_or(ABSENT, |bytes| version(&bytes))),
            #[cfg(feature = "typed")]
            Form::Typed(map) => Ok(map.get_in(tx, key)?.map_or(ABSENT, version_of_typed)),
            Form::Expiring(map) => Ok(with_life(map.get_in(tx, key)?)),
        }
    }

    pub fn multi_get_in(
        &self,
        tx: &Transaction<'_, impl Media>,
        keys: &[&[u8]],
    ) -> Result<Vec<Version>, Error> {
        let of_bytes = |found: Vec<Option<Vec<u8>>>| {
            let found = found.into_iter();
            found
                .map(|bytes| bytes.map_or(ABSENT, |bytes| version(&bytes)))
                .collect()
        };
        match self {
            Form::Bytes(map) => Ok(of_bytes(tx.multi_get(map, keys)?)),
            #[cfg(feature = "typed")]
            Form::Typed(map) => {
                let found = map.multi_get_in(tx, keys.iter().copied())?.into_iter();
                Ok(found
                    .map(|value| value.map_or(ABSENT, version_of_typed))
                    .collect())
            }
            Form::Expiring(map) => Ok(of_bytes(map.multi_get_in(tx, keys)?)),
        }
    }

    pub fn upsert_in(
        &self,
        tx: &mut Transaction<'_, impl Media>,
        key: &[u8],
        new: Version,
    ) -> Result<(), Error> {
        match self {
            Form::Bytes(map) => tx.upsert(map, key, value(new)),
            #[cfg(feature = "typed")]
            Form::Typed(map) => map.upsert_in(tx, &key.to_vec(), &typed(new)),
            Form::Expiring(map) => map.upsert_in(tx, key, value(new), life(new)),
        }
    }

    pub fn insert_in(
        &self,
        tx: &mut Transaction<'_, impl Media>,
        key: &[u8],
        new: Version,
    ) -> Result<bool, Error> {
        match self {
            Form::Bytes(map) => tx.insert(map, key, value(new)),
            #[cfg(feature = "typed")]
            Form::Typed(map) => map.insert_in(tx, &key.to_vec(), &typed(new)),
            Form::Expiring(map) => map.insert_in(tx, key, value(new), life(new)),
        }
    }

    pub fn update_in(
        &self,
        tx: &mut Transaction<'_, impl Media>,
        key: &[u8],
        new: Version,
    ) -> Result<bool, Error> {
        match self {
            Form::Bytes(map) => tx.update(map, key, value(new)),
            #[cfg(feature = "typed")]
            Form::Typed(map) => map.update_in(tx, &key.to_vec(), &typed(new)),
            Form::Expiring(map) => map.update_in(tx, key, value(new), life(new)),
        }
    }

    pub fn remove_in(&self, tx: &mut Transaction<'_, impl Media>, key: &[u8]) -> Result<bool, Error> {
        match self {
            Form::Bytes(map) => tx.remove(map, key),
            #[cfg(feature = "typed")]
            Form::Typed(map) => map.remove_in(tx, key),
            Form::Expiring(map) => map.remove_in(tx, key),
        }
    }

    /// Puts a version, or removes the key; returns the version before.
    pub fn edit_in(
        &self,
        tx: &mut Transaction<'_, impl Media>,
        key: &[u8],
        new: Version,
    ) -> Result<Version, Error> {
        let mut seen = ABSENT;
        let put = (new != ABSENT).then(|| value(new));
        match self {
            Form::Bytes(map) => {
                tx.edit_with(map, key, |old| {
                    seen = old.map_or(ABSENT, version);
                    put
                })?;
            }
            #[cfg(feature = "typed")]
            Form::Typed(map) => {
                map.edit_with_in(tx, &key.to_vec(), |old| {
                    seen = old.map_or(ABSENT, version_of_typed);
                    put.is_some().then(|| typed(new))
                })?;
            }
            Form::Expiring(map) => {
                map.edit_with_in(tx, key, |old| {
                    seen = with_life(old.map(|(bytes, left)| (bytes.to_vec(), left)));
                    put.map(|put| (put, life(new)))
                })?;
            }
        }
        Ok(seen)
    }

    pub fn range_in<'t>(
        &self,
        tx: &'t Transaction<'_, impl Media>,
        bounds: Bounds,
    ) -> Result<Range<'t>, Error> {
        Ok(match self {
            Form::Bytes(map) => Box::new(tx.range(map, bounds)?.map(entry)),
            #[cfg(feature = "typed")]
            Form::Typed(map) => Box::new(map.range_in::<_, [u8]>(tx, bounds)?.map(typed_entry)),
            Form::Expiring(map) => Box::new(map.range_in(tx, bounds)?.map(entry)),
        })
    }

    pub fn prefix_in<'t>(
        &self,
        tx: &'t Transaction<'_, impl Media>,
        prefix: &[u8],
    ) -> Result<Range<'t>, Error> {
        Ok(match self {
            Form::Bytes(map) => Box::new(tx.prefix(map, prefix)?.map(entry)),
            #[cfg(feature = "typed")]
            Form::Typed(map) => Box::new(map.prefix_in(tx, prefix)?.map(typed_entry)),
            Form::Expiring(map) => Box::new(map.prefix_in(tx, prefix)?.map(entry)),
        })
    }

    /// Removes and returns the first entry, or the last one.
    pub fn pop_in(&self, tx: &mut Transaction<'_, impl Media>, first: bool) -> Result<Option<Found>, Error> {
        match self {
            Form::Bytes(map) if first => tx.pop_first(map)?.map(|found| entry(Ok(found))),
            Form::Bytes(map) => tx.pop_last(map)?.map(|found| entry(Ok(found))),
            #[cfg(feature = "typed")]
            Form::Typed(map) if first => map.pop_first_in(tx)?.map(|found| typed_entry(Ok(found))),
            #[cfg(feature = "typed")]
            Form::Typed(map) => map.pop_last_in(tx)?.map(|found| typed_entry(Ok(found))),
            Form::Expiring(map) if first => map.pop_first_in(tx)?.map(|found| entry(Ok(found))),
            Form::Expiring(map) => map.pop_last_in(tx)?.map(|found| entry(Ok(found))),
        }
        .transpose()
    }
}

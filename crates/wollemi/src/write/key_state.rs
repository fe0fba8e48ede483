//! A key and what it holds, or shall hold: what is read, expected and changed is made of these.

use crate::write::intent::Change;
use crate::write::stripes::StripeId;
use crate::{Error, Map};
use heap::Guard;

/// A key and what it holds, or shall hold.
#[derive(Clone, Debug)]
pub(crate) struct KeyState {
    pub map: Map,
    pub key: Vec<u8>,
    pub value: Option<Vec<u8>>,
}

impl KeyState {
    pub fn new(map: &Map, key: &[u8], value: Option<&[u8]>) -> KeyState {
        KeyState {
            map: map.clone(),
            key: key.to_vec(),
            value: value.map(<[u8]>::to_vec),
        }
    }

    pub fn change(&self) -> Change<'_> {
        Change {
            map: self.map.name(),
            key: &self.key,
            value: self.value.as_deref(),
        }
    }

    pub fn stripe(&self) -> StripeId {
        self.map.index.stripe_of(&self.key)
    }

    pub fn conflict(&self) -> Error {
        Error::conflict(self.map.name(), &self.key)
    }

    pub fn holds(&self, guard: &Guard) -> Result<bool, Error> {
        let found = self.map.index.get(&self.key, guard)?;
        Ok(found.as_deref() == self.value.as_deref())
    }
}

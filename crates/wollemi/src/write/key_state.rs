//! A key and its present or future value: the unit of reads, expectations and changes.

use crate::Error;
use crate::write::intent::KeyChange;
use crate::write::stripes::StripeId;
use crate::write::traffic::MapIndex;
use heap::Guard;
use std::sync::Arc;

/// A key and its present or future value.
#[derive(Clone, Debug)]
pub(crate) struct KeyState {
    pub map: Arc<dyn MapIndex>,
    pub key: Vec<u8>,
    pub value: Option<Vec<u8>>,
}

impl KeyState {
    pub fn new(map: &Arc<dyn MapIndex>, key: &[u8], value: Option<&[u8]>) -> KeyState {
        KeyState {
            map: map.clone(),
            key: key.to_vec(),
            value: value.map(<[u8]>::to_vec),
        }
    }

    pub fn change(&self) -> KeyChange<'_> {
        KeyChange {
            map: self.map.name(),
            key: &self.key,
            value: self.value.as_deref(),
        }
    }

    pub fn stripe(&self) -> StripeId {
        self.map.stripe_of(&self.key)
    }

    pub fn conflict(&self) -> Error {
        Error::conflict(self.map.name(), &self.key)
    }

    pub fn holds(&self, guard: &Guard) -> Result<bool, Error> {
        let found = self.map.bare().get(&self.key, guard)?;
        Ok(found.as_deref() == self.value.as_deref())
    }
}

//! memcached's protocol.

pub mod parse;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parse::MAX_KEY;

/// The key that stands in base64.
pub fn base64_key<'k>(key: &[u8], space: &'k mut [u8; MAX_KEY]) -> Option<&'k [u8]> {
    let length = BASE64_STANDARD.decode_slice(key, space).ok()?;
    // The empty key is not a client's.
    space.get(..length).filter(|key| !key.is_empty())
}

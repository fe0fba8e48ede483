//! By how much a request may grow the items.

use crate::items::item::{self, PLACE};
use crate::proto::memcached::request::{Body, MetaVerb, Request};

/// Returns an upper bound on the bytes by which a request may grow the items.
pub fn growth(request: &Request<'_>) -> u64 {
    match request {
        Request::Store {
            body: Body::Classic { key, .. },
            data,
        } => item_size(key, data.len()),
        Request::Store {
            body: Body::Meta(meta),
            data,
        } => item_size(meta.key, data.len()),
        // These may create an item.
        Request::Meta(meta) if meta.verb == MetaVerb::Count || meta.flags.vivify.is_some() => {
            item_size(meta.key, NUMBER)
        }
        Request::Count { .. } => NUMBER as u64,
        _ => 0,
    }
}

/// Returns the bytes that an item takes.
pub fn item_size(key: &[u8], data: usize) -> u64 {
    PLACE + (key.len() + item::HEADER + data) as u64
}

/// Bytes of the longest number.
const NUMBER: usize = 20;

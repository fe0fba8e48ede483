//! By how much items may grow by a request.

use super::parse::{Body, MetaVerb, Request};
use crate::items::item;
use crate::items::item::PLACE;

/// Upper bound on the bytes by which a request may grow items.
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
        // These may make an item.
        Request::Meta(meta) if meta.verb == MetaVerb::Count || meta.flags.vivify.is_some() => {
            item_size(meta.key, NUMBER)
        }
        Request::Count { .. } => NUMBER as u64,
        _ => 0,
    }
}

/// What an item takes.
pub fn item_size(key: &[u8], data: usize) -> u64 {
    PLACE + (key.len() + item::HEADER + data) as u64
}

/// The bytes of the longest number.
const NUMBER: usize = 20;

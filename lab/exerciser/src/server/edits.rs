//! Changes of items that memcached's classic and meta commands share.

use super::step::{Draw, Life};
use super::truth::{End, Item, Place, now};
use std::sync::Arc;

/// The answer to `incr`, `decr` or `ma` of an item that is not a number.
pub(super) const NOT_NUMBER: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value";

/// Draws a lifetime, and returns it also as memcached's argument.
pub(super) fn lifetime(draw: &mut Draw<'_>) -> (String, Life) {
    match draw.random.below(20) {
        0..11 => ("0".into(), Life::Endless),
        11 => ("-1".into(), Life::Expired),
        12..15 => {
            let second = now() / 1000 + 3_000_000 + draw.random.below(1_000_000);
            (second.to_string(), Life::Until(End::at(second * 1000)))
        }
        _ => {
            let seconds = 20_000 + draw.random.below(1_000_000);
            (seconds.to_string(), Life::Until(End::after(seconds * 1000)))
        }
    }
}

/// Gives an item another lifetime, and keeps its unique. Returns the item as it was.
pub(super) fn touch(draw: &mut Draw<'_>, place: Place, life: Life) -> Option<Item> {
    let old = draw.item(place)?;
    let new = match life {
        Life::Expired => None,
        Life::Endless => Some(Item {
            end: None,
            ..old.clone()
        }),
        Life::Until(end) => Some(Item {
            end: Some(end),
            ..old.clone()
        }),
    };
    draw.set(place, new);
    Some(old)
}

/// Returns a unique for a `cas`, and whether it is the item's.
pub(super) fn unique(draw: &mut Draw<'_>, place: Place) -> (u64, bool) {
    let known = draw.truth.item(place).and_then(|item| item.unique);
    let outdated = draw.truth.outdated[place.1];
    match (known, outdated) {
        (Some(unique), _) if !draw.random.one_in(4) => (unique, true),
        (_, Some(unique)) => (unique, false),
        // A unique that no server reaches.
        _ => (u64::MAX, false),
    }
}

/// Concatenates two parts of an item's data.
pub(super) fn joined(parts: [&[u8]; 2]) -> Arc<[u8]> {
    parts.concat().into()
}

/// Parses data as memcached parses a number: skips leading blanks, and ignores everything after the first blank that
/// follows.
pub(super) fn leading_number(data: &[u8]) -> Option<u64> {
    let text = data
        .split(|byte| b" \t\r\n\x0b\x0c".contains(byte))
        .find(|text| !text.is_empty())?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Replaces an item's data with a number, padded with blanks to the length of the old data.
pub(super) fn put_number(draw: &mut Draw<'_>, place: Place, old: &Item, number: u64) -> u64 {
    let mut text = number.to_string().into_bytes();
    let longer = text.len() > old.data.len();
    text.resize(text.len().max(old.data.len()), b' ');
    let marks = if longer { 0 } else { old.marks };
    draw.put(place, text.into(), old.flags, marks, Draw::life_of(old))
}

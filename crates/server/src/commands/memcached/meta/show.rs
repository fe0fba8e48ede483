//! The answer of `mg`, and the changes of the item's header that its flags make.

use crate::items::access::Seen;
use crate::items::item::{self, AWAITED, BINARY_KEY, Header, STALE};
use crate::proto::memcached::answer::{begin_answer, echo, labelled, seconds_left};
use crate::proto::memcached::request::Flags;

/// An item, and what `mg` can show of it.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    pub key: &'a [u8],
    pub data: &'a [u8],
    /// Its accesses before this request.
    pub seen: Seen,
    /// The current time in milliseconds.
    pub now: u64,
    /// The current time in seconds since the server started.
    pub second: u64,
}

/// Appends an item as `mg` shows it, and changes its header if the flags say so. `made` says whether this request
/// creates the item. The flags apply in their order: `t` shows the expiry that a `T` before it has set.
pub fn show(flags: &Flags<'_>, shown: &Shown<'_>, header: &mut Header, made: bool, out: &mut Vec<u8>) {
    let Shown {
        key, data, seen, now, ..
    } = *shown;
    let mut won = made;
    begin_answer(flags, data.len(), out);
    for word in flags.words.clone() {
        match word[0] {
            b'T' => header.expiry = item::expiry(flags.lifetime.unwrap_or(0), now),
            b'N' if made => header.expiry = item::expiry(flags.vivify.unwrap_or(0), now),
            b'R' => {
                let soon = item::expiry(flags.recache.unwrap_or(0), now);
                won |= header.marks & AWAITED == 0 && !made && header.expiry != 0 && header.expiry < soon;
            }
            b's' => labelled(b's', data.len() as u64, out),
            b't' => seconds_left(header, now, out),
            b'c' => labelled(b'c', header.unique, out),
            b'f' => labelled(b'f', header.flags.into(), out),
            b'l' => labelled(b'l', shown.second.saturating_sub(seen.second), out),
            b'h' => labelled(b'h', seen.fetched.into(), out),
            b'O' | b'k' => echo(word, key, header.marks & BINARY_KEY != 0, out),
            _ => {}
        }
    }
    let awaited = header.marks & AWAITED != 0;
    if awaited {
        out.extend_from_slice(b" Z");
    }
    if header.marks & STALE != 0 {
        out.extend_from_slice(b" X");
        won |= !awaited;
    }
    if won {
        out.extend_from_slice(b" W");
        header.marks |= AWAITED;
    }
    out.extend_from_slice(b"\r\n");
    if flags.value {
        out.extend_from_slice(data);
        out.extend_from_slice(b"\r\n");
    }
}

//! The answers of meta commands.

use crate::items::access::Seen;
use crate::items::item::{self, AWAITED, BINARY_KEY, Header, STALE};
use crate::items::number;
use crate::items::store::Outcome;
use crate::proto::memcached::parse::Flags;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// An item as an answer shows it.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    pub key: &'a [u8],
    pub data: &'a [u8],
    /// What is known of it from before this request.
    pub seen: Seen,
    /// The millisecond it is, and the second counted from the server's start.
    pub now: u64,
    pub second: u64,
}

/// Shows an item as `mg` does, and changes its header where the flags say so.
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

/// Says that `mg` has found nothing.
pub fn miss(key: &[u8], flags: &Flags<'_>, out: &mut Vec<u8>) {
    if !flags.quiet {
        out.extend_from_slice(b"EN");
        echoes(key, flags, out);
        out.extend_from_slice(b"\r\n");
    }
}

/// Begins an answer that tells of an item.
pub fn begin_answer(flags: &Flags<'_>, length: usize, out: &mut Vec<u8>) {
    if flags.value {
        out.extend_from_slice(b"VA ");
        number::write(out, length as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
}

/// A flag and its number.
pub fn labelled(label: u8, number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b' ', label]);
    number::write(out, number);
}

/// The `t` of an item.
pub fn seconds_left(header: &Header, now: u64, out: &mut Vec<u8>) {
    match header.seconds_left(now) {
        Some(left) => labelled(b't', left, out),
        None => out.extend_from_slice(b" t-1"),
    }
}

/// Gives back the opaque word, and the key.
pub fn echoes(key: &[u8], flags: &Flags<'_>, out: &mut Vec<u8>) {
    for word in flags.words.clone() {
        echo(word, key, flags.binary, out);
    }
}

/// Whether a key cannot stand in an answer as it is: it would end a word or a line.
pub fn needs_base64(key: &[u8]) -> bool {
    key.iter().any(|&byte| byte <= b' ' || byte == 0x7f)
}

/// Gives back a word, if it is one that is given back.
pub fn echo(word: &[u8], key: &[u8], binary: bool, out: &mut Vec<u8>) {
    match word[0] {
        b'O' => {
            out.push(b' ');
            out.extend_from_slice(word);
        }
        b'k' if binary || needs_base64(key) => {
            out.extend_from_slice(b" k");
            out.extend_from_slice(BASE64_STANDARD.encode(key).as_bytes());
            out.extend_from_slice(b" b");
        }
        b'k' => {
            out.extend_from_slice(b" k");
            out.extend_from_slice(key);
        }
        _ => {}
    }
}

/// The mark of an item whose key came in base64, if it did.
pub fn binary_mark(flags: &Flags<'_>) -> u32 {
    if flags.binary { BINARY_KEY } else { 0 }
}

/// How a meta command's answer begins.
pub fn outcome_of(outcome: Outcome) -> &'static [u8] {
    match outcome {
        Outcome::Done | Outcome::Number(_) => b"HD",
        Outcome::NotStored | Outcome::NotNumber => b"NS",
        Outcome::Exists => b"EX",
        Outcome::NotFound => b"NF",
    }
}

//! Appends answers to an output buffer. Answers that are constant stand where the requests are carried out.

use super::request::Flags;
use crate::items::item::{Header, Item};
use crate::items::number;
use crate::items::store::Outcome;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Appends a server error.
pub fn server_error(why: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"SERVER_ERROR ");
    out.extend_from_slice(why.replace(['\r', '\n'], " ").as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends an item as `get` shows it.
pub fn value(key: &[u8], item: &Item<'_>, unique: bool, out: &mut Vec<u8>) {
    out.reserve(key.len() + item.data.len() + 64);
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    number::write(out, u64::from(item.header.flags));
    out.push(b' ');
    number::write(out, item.data.len() as u64);
    if unique {
        out.push(b' ');
        number::write(out, item.header.unique);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(item.data);
    out.extend_from_slice(b"\r\n");
}

/// Appends the answer of an `mg` that found nothing.
pub fn miss(key: &[u8], flags: &Flags<'_>, out: &mut Vec<u8>) {
    if !flags.quiet {
        out.extend_from_slice(b"EN");
        echoes(key, flags, out);
        out.extend_from_slice(b"\r\n");
    }
}

/// Begins the answer of a meta command that shows an item.
pub fn begin_answer(flags: &Flags<'_>, length: usize, out: &mut Vec<u8>) {
    if flags.value {
        out.extend_from_slice(b"VA ");
        number::write(out, length as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
}

/// Appends a flag and its number.
pub fn labelled(label: u8, number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b' ', label]);
    number::write(out, number);
}

/// Appends the flag `t` of an item: the seconds it has left.
pub fn seconds_left(header: &Header, now: u64, out: &mut Vec<u8>) {
    match header.seconds_left(now) {
        Some(left) => labelled(b't', left, out),
        None => out.extend_from_slice(b" t-1"),
    }
}

/// Echoes the opaque word and the key, as far as the client has asked for them.
pub fn echoes(key: &[u8], flags: &Flags<'_>, out: &mut Vec<u8>) {
    for word in flags.words.clone() {
        echo(word, key, flags.binary, out);
    }
}

/// Returns whether a key must be in base64 in an answer, since it contains a blank or a control character.
pub fn needs_base64(key: &[u8]) -> bool {
    key.iter().any(|&byte| byte <= b' ' || byte == 0x7f)
}

/// Echoes a word of the request, if it is one that is echoed.
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

/// Returns the first word of a meta command's answer for this outcome.
pub fn outcome_of(outcome: Outcome) -> &'static [u8] {
    match outcome {
        Outcome::Done | Outcome::Number(_) => b"HD",
        Outcome::NotStored | Outcome::NotNumber => b"NS",
        Outcome::Exists => b"EX",
        Outcome::NotFound => b"NF",
    }
}

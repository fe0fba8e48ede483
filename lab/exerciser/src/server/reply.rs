//! A server's answers, of either protocol, and the expected ones.
//!
//! Answers are compared byte for byte, except for values that depend on the clock, the server or another user:
//! remaining lifetimes, uniques, and the keys of other users in a listing.

use super::truth::{End, Place, Unique};
use crate::keys::owner;
use std::fmt;
use std::sync::Arc;

/// An answer.
#[derive(Clone, PartialEq)]
pub(super) enum Reply {
    /// A status of Redis, or a line of memcached.
    Line(Vec<u8>),
    Error(Vec<u8>),
    Int(i64),
    Bulk(Arc<[u8]>),
    Null,
    /// An array of Redis, or the values of memcached's `get`.
    Array(Vec<Reply>),
    /// A value of memcached: the line before it, and the data.
    Value(Vec<u8>, Arc<[u8]>),
}

impl Reply {
    pub fn line(text: &str) -> Reply {
        Reply::Line(text.as_bytes().to_vec())
    }

    pub fn error(text: &str) -> Reply {
        Reply::Error(text.as_bytes().to_vec())
    }

    pub fn bulk(data: Option<&Arc<[u8]>>) -> Reply {
        data.map_or(Reply::Null, |data| Reply::Bulk(data.clone()))
    }

    /// Returns whether the answer refuses a write because the pool has no room.
    pub fn is_refusal(&self) -> bool {
        let text = match self {
            Reply::Line(text) | Reply::Error(text) => String::from_utf8_lossy(text),
            _ => return false,
        };
        (text.starts_with("SERVER_ERROR ") || text.starts_with("ERR ")) && text.contains("no room for")
    }
}

/// An expected word of a line.
#[derive(Clone)]
pub(super) enum Word {
    Is(Vec<u8>),
    /// The unique of an item, after this label.
    Unique(&'static str, Place, u64),
    /// The remaining lifetime after a `t`, in seconds, rounded up.
    Left(Option<End>),
}

impl Word {
    pub fn is(text: impl Into<Vec<u8>>) -> Word {
        Word::Is(text.into())
    }
}

/// A key of a listing, and its data if the request asks for them.
pub(super) type Listed = (Vec<u8>, Option<Arc<[u8]>>);

/// An expected answer.
#[derive(Clone)]
pub(super) enum Expected {
    Is(Reply),
    /// A line of these words.
    Line(Vec<Word>),
    /// The line before a value, and the data.
    Value(Vec<Word>, Arc<[u8]>),
    All(Vec<Expected>),
    /// A remaining lifetime; the number is the unit, in milliseconds.
    Left(End, u64),
    /// The time of expiry; the number is the unit, in milliseconds.
    Ends(End, u64),
    /// These keys, perhaps with their data, among keys of other users; in this order, or in any.
    Keys {
        own: Vec<Listed>,
        user: usize,
        ordered: bool,
    },
    /// One of these.
    OneOf(Vec<Reply>),
    /// Any answer: it depends on other users, the clock or the server's state.
    Any,
}

/// The times before a request was sent and after its answer arrived, in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub from: u64,
    pub to: u64,
}

/// Tolerance between two readings of the clock, in milliseconds.
const SLACK: u64 = 1000;

impl Sent {
    /// Returns whether `left` milliseconds may remain before `end`.
    pub fn may_be_left(self, end: End, left: u64) -> bool {
        let least = end.low.saturating_sub(self.to + SLACK);
        let max = (end.high + SLACK).saturating_sub(self.from);
        (least..=max).contains(&left)
    }
}

impl Expected {
    /// Returns whether `reply` is as expected. Adds the uniques that it shows to `uniques`.
    pub fn is(&self, reply: &Reply, sent: Sent, uniques: &mut Vec<Unique>) -> bool {
        match (self, reply) {
            (Expected::Any, _) => true,
            (Expected::Is(expected), reply) => expected == reply,
            (Expected::OneOf(some), reply) => some.contains(reply),
            (Expected::Line(words), Reply::Line(line)) => are_words(words, line, sent, uniques),
            (Expected::Value(words, data), Reply::Value(line, found)) => {
                data == found && are_words(words, line, sent, uniques)
            }
            (Expected::All(expected), Reply::Array(replies)) => {
                let mut pairs = expected.iter().zip(replies);
                expected.len() == replies.len()
                    && pairs.all(|(expected, reply)| expected.is(reply, sent, uniques))
            }
            (Expected::Left(end, unit), &Reply::Int(left)) => {
                let left = u64::try_from(left).map(|left| left * unit);
                left.is_ok_and(|left| sent.may_be_left(*end, left))
            }
            (Expected::Ends(end, unit), &Reply::Int(at)) => {
                // Redis rounds to the nearest second.
                let rounding = if *unit == 1 { 0 } else { *unit };
                let allowed = end.low.saturating_sub(rounding)..=end.high + rounding;
                u64::try_from(at).is_ok_and(|at| allowed.contains(&(at * unit)))
            }
            (Expected::Keys { own, user, ordered }, Reply::Array(found)) => {
                let with_data = own.iter().any(|(_, data)| data.is_some());
                are_keys(own, found, with_data, *user, *ordered)
            }
            _ => false,
        }
    }
}

fn are_words(words: &[Word], line: &[u8], sent: Sent, uniques: &mut Vec<Unique>) -> bool {
    let found: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u64>().ok();
    found.len() == words.len()
        && words.iter().zip(found).all(|(word, found)| match word {
            Word::Is(text) => text == found,
            Word::Left(None) => found == b"t-1",
            Word::Left(Some(end)) => {
                let left = found.strip_prefix(b"t").and_then(number);
                left.is_some_and(|left| sent.may_be_left(*end, left * 1000))
            }
            &Word::Unique(label, place, stamp) => {
                let unique = found.strip_prefix(label.as_bytes()).and_then(number);
                uniques.extend(unique.map(|unique| Unique { place, stamp, unique }));
                unique.is_some()
            }
        })
}

/// Returns whether a listing has exactly these own keys among those of other users.
fn are_keys(own: &[Listed], found: &[Reply], with_data: bool, user: usize, ordered: bool) -> bool {
    // Flattens the pairs of RESP3, as RESP2 has them.
    let mut flat = Vec::new();
    for reply in found {
        match reply {
            Reply::Bulk(bytes) => flat.push(bytes),
            Reply::Array(pair) => {
                for reply in pair {
                    let Reply::Bulk(bytes) = reply else { return false };
                    flat.push(bytes);
                }
            }
            _ => return false,
        }
    }
    let entries = flat.chunks(if with_data { 2 } else { 1 });
    let mut entries: Vec<_> = entries
        .filter(|entry| owner(entry[0]) == Some(user))
        .map(|entry| (entry[0].to_vec(), entry.get(1).map(|data| (*data).clone())))
        .collect();
    if !ordered {
        entries.sort();
    }
    entries == own
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Line(text) => write!(f, "{}", shown(text)),
            Reply::Error(text) => write!(f, "-{}", shown(text)),
            Reply::Int(number) => write!(f, ":{number}"),
            Reply::Bulk(data) => write!(f, "\"{}\"", shown(data)),
            Reply::Null => write!(f, "nil"),
            Reply::Array(all) => f.debug_list().entries(all).finish(),
            Reply::Value(line, data) => write!(f, "{} \"{}\"", shown(line), shown(data)),
        }
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Word::Is(text) => write!(f, "{}", shown(text)),
            Word::Unique(label, ..) => write!(f, "{label}(unique)"),
            Word::Left(end) => write!(f, "t(seconds to {end:?})"),
        }
    }
}

impl fmt::Debug for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Is(reply) => write!(f, "{reply:?}"),
            Expected::Line(words) => write!(f, "{words:?}"),
            Expected::Value(words, data) => write!(f, "{words:?} \"{}\"", shown(data)),
            Expected::All(all) => f.debug_list().entries(all).finish(),
            Expected::Left(end, unit) => write!(f, "time left to {end:?}, in units of {unit} ms"),
            Expected::Ends(end, unit) => write!(f, "{end:?}, in units of {unit} ms"),
            Expected::Keys { own, ordered, .. } => {
                write!(f, "{}", if *ordered { "in this order" } else { "in any order" })?;
                let entries = own.iter().map(|(key, data)| match data {
                    None => shown(key),
                    Some(data) => format!("{} = {}", shown(key), shown(data)),
                });
                f.debug_list().entries(entries).finish()
            }
            Expected::OneOf(some) => write!(f, "one of {some:?}"),
            Expected::Any => write!(f, "anything"),
        }
    }
}

/// Returns bytes as text; at most 160 of them.
pub(super) fn shown(bytes: &[u8]) -> String {
    const MAX: usize = 160;
    match bytes.len() {
        0..=MAX => bytes.escape_ascii().to_string(),
        len => format!("{}… ({len} bytes)", bytes[..MAX].escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Sent = Sent {
        from: 50_000,
        to: 50_010,
    };

    /// A remaining lifetime may differ by the clock's tolerance, and by no more.
    #[test]
    fn lives_are_compared() {
        let end = End {
            low: 100_000,
            high: 100_000,
        };
        let is = |left| Expected::Left(end, 1).is(&Reply::Int(left), SENT, &mut Vec::new());
        assert!(is(50_000) && is(49_000));
        assert!(!is(45_000) && !is(60_000) && !is(-1));
    }

    /// A listing may have keys of other users, and must have exactly the user's own.
    #[test]
    fn listings_have_all_own_keys() {
        let bulk = |text: &[u8]| Reply::Bulk(text.into());
        let expected = Expected::Keys {
            own: vec![(b"a1".to_vec(), None), (b"b1".to_vec(), None)],
            user: 1,
            ordered: true,
        };
        let is = |found: &[&[u8]]| {
            let found = found.iter().map(|key| bulk(key)).collect();
            expected.is(&Reply::Array(found), SENT, &mut Vec::new())
        };
        assert!(is(&[b"a1", b"b2", b"b1"]));
        assert!(!is(&[b"b1", b"a1"]));
        assert!(!is(&[b"a1"]));
        assert!(!is(&[b"a1", b"b1", b"c1"]));
    }
}

//! Command lines: the classic commands. Meta commands are parsed by `meta`.

use super::super::request::{Body, Keys, MAX_KEY, MetaVerb, Request};
use super::meta;
use super::parsed::{BAD_LINE, ERROR, Line, MAX_LENGTH, Parsed, whole, wrong};
use crate::items::number;
use crate::items::store::classic::Verb;
use crate::proto::http::is_http;
use std::ops::RangeInclusive;

const BAD_DELETE: &str = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
const BAD_DELTA: &str = "CLIENT_ERROR invalid numeric delta argument\r\n";
const BAD_LIFETIME: &str = "CLIENT_ERROR invalid exptime argument\r\n";
const LIMIT_TOO_SMALL: &str = "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n";
const LIMIT_TOO_LARGE: &str = "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n";

/// The first words of a line: as many as the longest command has, and one more to detect too many.
struct Words<'b> {
    words: [&'b [u8]; Words::MAX],
    count: usize,
}

impl<'b> Words<'b> {
    const MAX: usize = 8;

    fn of(line: &'b [u8]) -> Words<'b> {
        let mut all = Words {
            words: [&[]; Words::MAX],
            count: 0,
        };
        for (slot, word) in all.words.iter_mut().zip(Keys::of(line)) {
            *slot = word;
            all.count += 1;
        }
        all
    }

    fn last_is_noreply(&self) -> bool {
        self.count > 0 && self.words[self.count - 1] == b"noreply"
    }
}

/// Parses a line. If it is wrong, the answer is memcached's.
pub fn parse(line: &[u8]) -> Parsed<'_> {
    let mut rest = Keys::of(line);
    let command = rest.next().unwrap_or_default();
    match command {
        b"get" | b"gets" => get(rest, command == b"gets"),
        b"gat" | b"gats" => get_and_touch(rest, command == b"gats"),
        b"set" => store(None, line, 5..=6),
        b"add" => store(Some(Verb::Add), line, 5..=6),
        b"replace" => store(Some(Verb::Replace), line, 5..=6),
        b"append" => store(Some(Verb::Append), line, 5..=6),
        b"prepend" => store(Some(Verb::Prepend), line, 5..=6),
        b"cas" => store(Some(Verb::Cas(0)), line, 6..=7),
        b"delete" => short(line, 2..=4, delete),
        b"incr" => short(line, 3..=4, |words| count(words, true)),
        b"decr" => short(line, 3..=4, |words| count(words, false)),
        b"touch" => short(line, 3..=4, touch),
        b"flush_all" => short(line, 1..=3, flush_all),
        b"verbosity" => short(line, 2..=3, verbosity),
        b"cache_memlimit" => short(line, 2..=3, cache_memlimit),
        b"stats" => whole(Request::Stats {
            what: rest.next().unwrap_or_default(),
        }),
        b"mn" => whole(Request::MetaNothing),
        b"mg" => meta::short(MetaVerb::Get, rest),
        b"ms" => meta::set(rest),
        b"md" => meta::short(MetaVerb::Delete, rest),
        b"ma" => meta::short(MetaVerb::Count, rest),
        b"me" => meta::debug(rest),
        b"version" => whole(Request::Version),
        b"quit" => whole(Request::Quit),
        _ if is_http(Keys::of(line)) => whole(Request::Http),
        _ => wrong(ERROR),
    }
}

fn get(keys: Keys<'_>, unique: bool) -> Parsed<'_> {
    if keys.clone().next().is_none() {
        return whole(Request::Wrong(ERROR));
    }
    if keys.clone().any(|key| key.len() > MAX_KEY) {
        return whole(Request::Wrong(BAD_LINE));
    }
    whole(Request::Get { keys, unique })
}

fn get_and_touch(mut rest: Keys<'_>, unique: bool) -> Parsed<'_> {
    let Some(lifetime) = rest.next() else {
        return whole(Request::Wrong(ERROR));
    };
    let Some(lifetime) = number::signed(lifetime) else {
        return whole(Request::Wrong(BAD_LIFETIME));
    };
    if rest.clone().any(|key| key.len() > MAX_KEY) {
        return whole(Request::Wrong(BAD_LINE));
    }
    whole(Request::GetAndTouch {
        lifetime,
        keys: rest,
        unique,
    })
}

/// Parses the line of a storage command; without a verb, of `set`.
fn store(verb: Option<Verb>, line: &[u8], words: RangeInclusive<usize>) -> Parsed<'_> {
    let all = Words::of(line);
    if !words.contains(&all.count) {
        return whole(Request::Wrong(ERROR));
    }
    let [_, key, flags, lifetime, length, unique, ..] = all.words;
    let store = || {
        let verb = match verb {
            Some(Verb::Cas(_)) => Some(Verb::Cas(number::unsigned(unique)?)),
            other => other,
        };
        let key = Some(key).filter(|key| key.len() <= MAX_KEY)?;
        let flags = u32::try_from(number::unsigned(flags)?).ok()?;
        let lifetime = number::signed(lifetime)?;
        let body = match verb {
            None => Body::Set { key, flags, lifetime },
            Some(verb) => Body::Classic {
                verb,
                key,
                flags,
                lifetime,
            },
        };
        Some(Line::Body {
            body,
            length: number::unsigned(length).filter(|&length| length <= MAX_LENGTH)?,
        })
    };
    Parsed {
        line: store().unwrap_or(Line::Whole(Request::Wrong(BAD_LINE))),
        noreply: all.last_is_noreply(),
    }
}

/// Parses a command that is one short line.
fn short<'b>(
    line: &'b [u8],
    words: RangeInclusive<usize>,
    parse: impl FnOnce(&Words<'b>) -> Request<'b>,
) -> Parsed<'b> {
    let all = Words::of(line);
    if !words.contains(&all.count) {
        return whole(Request::Wrong(ERROR));
    }
    Parsed {
        line: Line::Whole(parse(&all)),
        noreply: all.last_is_noreply(),
    }
}

fn delete<'b>(all: &Words<'b>) -> Request<'b> {
    let [_, key, third, ..] = all.words;
    // A delete once took a time in seconds; of it, memcached still accepts `0`.
    let held = third == b"0";
    match all.count {
        3 if !held && !all.last_is_noreply() => Request::Wrong(BAD_DELETE),
        4 if !held || !all.last_is_noreply() => Request::Wrong(BAD_DELETE),
        _ if key.len() > MAX_KEY => Request::Wrong(BAD_LINE),
        _ => Request::Delete { key },
    }
}

fn count<'b>(all: &Words<'b>, up: bool) -> Request<'b> {
    let [_, key, delta, ..] = all.words;
    if key.len() > MAX_KEY {
        return Request::Wrong(BAD_LINE);
    }
    match number::unsigned(delta) {
        Some(delta) => Request::Count { key, delta, up },
        None => Request::Wrong(BAD_DELTA),
    }
}

fn touch<'b>(all: &Words<'b>) -> Request<'b> {
    let [_, key, lifetime, ..] = all.words;
    if key.len() > MAX_KEY {
        return Request::Wrong(BAD_LINE);
    }
    match number::signed(lifetime) {
        Some(lifetime) => Request::Touch { key, lifetime },
        None => Request::Wrong(BAD_LIFETIME),
    }
}

fn flush_all<'b>(all: &Words<'b>) -> Request<'b> {
    if all.count - usize::from(all.last_is_noreply()) == 1 {
        return Request::FlushAll { delay: 0 };
    }
    match number::signed(all.words[1]) {
        Some(delay) => Request::FlushAll { delay },
        None => Request::Wrong(BAD_LIFETIME),
    }
}

/// Parses `cache_memlimit`, whose limit is in MiB.
fn cache_memlimit<'b>(all: &Words<'b>) -> Request<'b> {
    match number::unsigned(all.words[1]) {
        None => Request::Wrong(ERROR),
        Some(..8) => Request::Wrong(LIMIT_TOO_SMALL),
        Some(megabytes @ ..=1_000_000_000) => Request::MemoryLimit(megabytes << 20),
        Some(_) => Request::Wrong(LIMIT_TOO_LARGE),
    }
}

fn verbosity<'b>(all: &Words<'b>) -> Request<'b> {
    if all.last_is_noreply() || number::unsigned(all.words[1]).is_some() {
        Request::Verbosity
    } else {
        Request::Wrong(BAD_LINE)
    }
}

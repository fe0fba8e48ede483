//! Draws commands on strings and numbers.

use super::super::reply::{Expected, Reply};
use super::super::step::{Draw, Life};
use super::super::truth::Place;
use super::lives::lifetime;
use super::{Command, NOT_INTEGER, error, int, line};
use std::sync::Arc;

const NAMES: [&str; 36] = [
    "GET",
    "GET",
    "GET",
    "GET",
    "MGET",
    "MGET",
    "SET",
    "SET",
    "SET",
    "SET",
    "SET",
    "SET WITH OPTIONS",
    "SET WITH OPTIONS",
    "SET WITH OPTIONS",
    "SETNX",
    "SETEX",
    "PSETEX",
    "GETSET",
    "GETDEL",
    "MSET",
    "MSET",
    "MSETNX",
    "APPEND",
    "APPEND",
    "STRLEN",
    "GETRANGE",
    "SUBSTR",
    "SETRANGE",
    "SETRANGE",
    "INCR",
    "INCRBY",
    "INCRBY",
    "DECR",
    "DECRBY",
    "INCRBYFLOAT",
    "INCRBYFLOAT",
];

/// Maximum length of an item's data, however much is appended.
const MAX_LEN: usize = 1 << 20;

pub(super) fn draw(draw: &mut Draw<'_>) -> Command {
    let place = draw.place();
    let key = draw.key(place);
    let old = draw.item(place);
    let data = old.as_ref().map(|old| old.data.clone());
    match draw.random.pick(&NAMES) {
        "GET" => Command::new("GET", [key], Expected::Is(Reply::bulk(data.as_ref()))),
        "MGET" => mget(draw),
        "SET WITH OPTIONS" => set(draw, place),
        "SETNX" => {
            let new = draw.data();
            if old.is_none() {
                draw.put(place, new.clone(), 0, 0, Life::Endless);
            }
            Command::new("SETNX", [key, &*new], int(old.is_none().into()))
        }
        name @ ("SETEX" | "PSETEX") => {
            let new = draw.data();
            let seconds = 20_000 + draw.random.below(1_000_000);
            let unit = if name == "SETEX" { 1 } else { 1000 };
            let life = Life::Until(super::super::truth::End::after(seconds * 1000));
            draw.put(place, new.clone(), 0, 0, life);
            Command::new(name, [key], line("OK"))
                .with([(seconds * unit).to_string()])
                .with([&*new])
        }
        "GETSET" => {
            let new = draw.data();
            draw.put(place, new.clone(), 0, 0, Life::Endless);
            Command::new("GETSET", [key, &*new], Expected::Is(Reply::bulk(data.as_ref())))
        }
        "GETDEL" => {
            draw.set(place, None);
            Command::new("GETDEL", [key], Expected::Is(Reply::bulk(data.as_ref())))
        }
        name @ ("MSET" | "MSETNX") => mset(draw, name),
        "APPEND" => {
            let more = draw.data();
            let old_data: &[u8] = data.as_deref().unwrap_or_default();
            if old_data.len() + more.len() > MAX_LEN {
                return Command::new("STRLEN", [key], int(old_data.len() as i64));
            }
            let joined: Arc<[u8]> = [old_data, &more].concat().into();
            let len = joined.len() as i64;
            change(draw, place, joined);
            Command::new("APPEND", [key, &*more], int(len))
        }
        "STRLEN" => Command::new("STRLEN", [key], int(data.map_or(0, |data| data.len() as i64))),
        name @ ("GETRANGE" | "SUBSTR") => {
            let bytes: &[u8] = data.as_deref().unwrap_or_default();
            let len = bytes.len() as i64;
            let bound = |draw: &mut Draw<'_>| draw.random.below(2 * bytes.len() as u64 + 10) as i64 - len - 5;
            let (first, last) = (bound(draw), bound(draw));
            let part: Arc<[u8]> = part(bytes, first, last).into();
            Command::new(name, [key], Expected::Is(Reply::Bulk(part)))
                .with([first.to_string(), last.to_string()])
        }
        "SETRANGE" => {
            let new = draw.data();
            let mut bytes = data.map_or(Vec::new(), |data| data.to_vec());
            let offset = draw
                .random
                .index((bytes.len() + 20).min(MAX_LEN - new.len().min(MAX_LEN)));
            if !new.is_empty() {
                bytes.resize(bytes.len().max(offset + new.len()), 0);
                bytes[offset..offset + new.len()].copy_from_slice(&new);
                change(draw, place, bytes.clone().into());
            }
            Command::new("SETRANGE", [key], int(bytes.len() as i64))
                .with([offset.to_string()])
                .with([&*new])
        }
        name @ ("INCR" | "INCRBY" | "DECR" | "DECRBY") => count(draw, place, name),
        "INCRBYFLOAT" => count_decimal(draw, place),
        _ => {
            let new = draw.data();
            draw.put(place, new.clone(), 0, 0, Life::Endless);
            Command::new("SET", [key, &*new], line("OK"))
        }
    }
}

/// Gives a key other data, and keeps its lifetime.
fn change(draw: &mut Draw<'_>, place: Place, data: Arc<[u8]>) {
    let life = draw.item(place).map_or(Life::Endless, |old| Draw::life_of(&old));
    draw.put(place, data, 0, 0, life);
}

fn mget(draw: &mut Draw<'_>) -> Command {
    let places: Vec<_> = (0..1 + draw.random.below(8)).map(|_| draw.place()).collect();
    let values = places.iter().map(|&place| {
        let data = draw.truth.item(place).map(|item| &item.data);
        Expected::Is(Reply::bulk(data))
    });
    let expected = Expected::All(values.collect());
    Command::new("MGET", places.iter().map(|&place| draw.key(place)), expected)
}

fn set(draw: &mut Draw<'_>, place: Place) -> Command {
    let old = draw.item(place);
    let new = draw.data();
    let mut words: Vec<Vec<u8>> = Vec::new();
    let (mut stores, mut life) = (true, Life::Endless);
    match draw.random.below(4) {
        0 => {
            words.push(b"nx".to_vec());
            stores = old.is_none();
        }
        1 => {
            words.push(b"XX".to_vec());
            stores = old.is_some();
        }
        _ => {}
    }
    match draw.random.below(3) {
        0 => {
            words.push(b"KEEPTTL".to_vec());
            life = old.as_ref().map_or(Life::Endless, Draw::life_of);
        }
        1 => {
            let (unit, time, given) = lifetime(draw);
            words.extend([unit.into(), time.to_string().into()]);
            life = given;
        }
        _ => {}
    }
    let gets = draw.random.one_in(3);
    if gets {
        words.push(b"GET".to_vec());
    }
    if stores {
        draw.put(place, new.clone(), 0, 0, life);
    }
    let expected = match (gets, stores) {
        (true, _) => Expected::Is(Reply::bulk(old.map(|old| old.data).as_ref())),
        (false, true) => line("OK"),
        (false, false) => Expected::Is(Reply::Null),
    };
    Command::new("SET", [draw.key(place), &*new], expected).with(words)
}

fn mset(draw: &mut Draw<'_>, name: &'static str) -> Command {
    let pairs = (0..1 + draw.random.below(6)).map(|_| (draw.place(), draw.data()));
    let pairs: Vec<_> = pairs.collect();
    let stores = name == "MSET" || pairs.iter().all(|&(place, _)| draw.truth.item(place).is_none());
    let mut words: Vec<Vec<u8>> = Vec::new();
    for (place, data) in pairs {
        words.extend([draw.key(place).to_vec(), data.to_vec()]);
        if stores {
            draw.put(place, data, 0, 0, Life::Endless);
        }
    }
    let expected = match name {
        "MSET" => line("OK"),
        _ => int(stores.into()),
    };
    Command::new(name, words, expected)
}

/// Returns the bytes from `first` through `last`; negative indexes count from the end.
fn part(bytes: &[u8], first: i64, last: i64) -> &[u8] {
    let len = bytes.len() as i64;
    if first < 0 && last < 0 && first > last {
        return &[];
    }
    let place = |at: i64| if at < 0 { (at + len).max(0) } else { at };
    let (first, last) = (place(first), place(last).min(len - 1));
    match first <= last && len > 0 {
        true => &bytes[first as usize..=last as usize],
        false => &[],
    }
}

/// Parses data as Redis parses an integer.
fn number(data: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(data).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn count(draw: &mut Draw<'_>, place: Place, name: &'static str) -> Command {
    let by = match name {
        "INCR" | "DECR" => 1,
        _ => draw.random.pick(&[0, 1, -1, 1000, -77, 1 << 40, i64::MAX]),
    };
    let signed = if name.starts_with("DECR") { -by } else { by };
    let old = draw.item(place).map_or(Some(0), |old| number(&old.data));
    let expected = match old.map(|old| old.checked_add(signed)) {
        None => error(NOT_INTEGER),
        Some(None) => error("ERR increment or decrement would overflow"),
        Some(Some(sum)) => {
            change(draw, place, sum.to_string().into_bytes().into());
            int(sum)
        }
    };
    let command = Command::new(name, [draw.key(place)], expected);
    match name {
        "INCR" | "DECR" => command,
        _ => command.with([by.to_string()]),
    }
}

/// The unit of [`decimal`]: ten-thousandths.
const UNITS: i64 = 10_000;

/// Parses data as a short decimal number, in ten-thousandths.
fn decimal(data: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(data).ok()?;
    let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(digits) || !are_digits(rest) || digits.len() > 12 || rest.len() > 4 {
        return None;
    }
    let parts = digits.parse::<i64>().ok()? * UNITS + format!("{rest:0<4}").parse::<i64>().ok()?;
    Some(if whole.starts_with('-') { -parts } else { parts })
}

/// Draws an `INCRBYFLOAT` whose sum has few digits, or one on text, which fails. For other data it draws an `INCR`
/// instead.
fn count_decimal(draw: &mut Draw<'_>, place: Place) -> Command {
    let by = draw.random.pick(&["0.5", "-2.25", "10", "0.0001", "-1000"]);
    let old = draw.item(place);
    let sum = match &old {
        None => Some(0),
        Some(old) => decimal(&old.data),
    };
    let Some(sum) = sum.and_then(|sum| Some(sum + decimal(by.as_bytes())?)) else {
        let is_text = old.is_some_and(|old| old.data.starts_with(b"v"));
        return match is_text {
            true => Command::new(
                "INCRBYFLOAT",
                [draw.key(place), by.as_bytes()],
                error("ERR value is not a valid float"),
            ),
            // A number too long to compute the sum here, or no number at all, such as empty data.
            false => count(draw, place, "INCR"),
        };
    };
    let mut text = format!("{}", sum / UNITS);
    if sum < 0 && sum > -UNITS {
        text.insert(0, '-');
    }
    if sum % UNITS != 0 {
        let rest = format!("{:04}", (sum % UNITS).abs());
        text = format!("{text}.{}", rest.trim_end_matches('0'));
    }
    let data: Arc<[u8]> = text.into_bytes().into();
    change(draw, place, data.clone());
    Command::new(
        "INCRBYFLOAT",
        [draw.key(place), by.as_bytes()],
        Expected::Is(Reply::Bulk(data)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers are parsed as strictly as Redis does.
    #[test]
    fn numbers_are_strict() {
        assert_eq!(number(b"-12"), Some(-12));
        for text in ["", "+1", "01", "1 ", "-0", "9223372036854775808"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
        assert_eq!(decimal(b"-0.5"), Some(-5000));
        assert_eq!(decimal(b"12.3456"), Some(123_456));
        assert_eq!(decimal(b"v1"), None);
    }
}

//! Commands on keys: removing and renaming them, and walking over them.

use super::super::reply::{Expected, Reply};
use super::super::step::Draw;
use super::super::truth::{Item, OWN, Place};
use super::{Command, error, int, line};
use wollemi::IndexError;

const NAMES: [&str; 20] = [
    "DEL",
    "DEL",
    "DEL",
    "UNLINK",
    "EXISTS",
    "EXISTS",
    "TOUCH",
    "TYPE",
    "RENAME",
    "RENAME",
    "RENAME",
    "RENAMENX",
    "RENAMENX",
    "KEYS",
    "KRANGE",
    "KRANGE",
    "KPREFIX",
    "RANDOMKEY",
    "FLUSHDB",
    "SCAN",
];

pub(super) fn draw(draw: &mut Draw<'_>) -> Command {
    match draw.random.pick(&NAMES) {
        name @ ("DEL" | "UNLINK" | "EXISTS" | "TOUCH") => several(draw, name),
        "TYPE" => {
            let place = draw.place();
            let kind = if draw.item(place).is_some() {
                "string"
            } else {
                "none"
            };
            Command::new("TYPE", [draw.key(place)], line(kind))
        }
        name @ ("RENAME" | "RENAMENX") => rename(draw, name),
        "KEYS" => {
            let expected = listing(draw, |_| true, false, false);
            Command::new("KEYS", ["*"], expected)
        }
        "KRANGE" => krange(draw),
        "KPREFIX" => kprefix(draw),
        "RANDOMKEY" => random_key(draw),
        "FLUSHDB" if *draw.database == OWN && draw.random.one_in(8) => {
            for n in 0..draw.keys.all.len() {
                if draw.item((OWN, n)).is_some() {
                    draw.set((OWN, n), None);
                }
            }
            let mode = draw.random.pick(&["SYNC", "async"]);
            Command::new("FLUSHDB", [mode], line("OK"))
        }
        // An invalid cursor.
        "SCAN" => Command::new("SCAN", ["x"], error("ERR invalid cursor")),
        _ => several(draw, "EXISTS"),
    }
}

fn several(draw: &mut Draw<'_>, name: &'static str) -> Command {
    let places: Vec<Place> = (0..1 + draw.random.below(5)).map(|_| draw.place()).collect();
    let mut count = 0;
    for &place in &places {
        count += i64::from(draw.item(place).is_some());
        if matches!(name, "DEL" | "UNLINK") {
            draw.set(place, None);
        }
    }
    Command::new(name, places.iter().map(|&place| draw.key(place)), int(count))
}

fn rename(draw: &mut Draw<'_>, name: &'static str) -> Command {
    let (from, to) = (draw.place(), draw.place());
    let replaces = name == "RENAME";
    let expected = match (draw.item(from), draw.item(to)) {
        (None, _) => error("ERR no such key"),
        _ if from == to => {
            if replaces {
                line("OK")
            } else {
                int(0)
            }
        }
        (Some(_), Some(_)) if !replaces => int(0),
        (Some(item), _) => {
            let stamp = draw.next_stamp();
            draw.set(
                to,
                Some(Item {
                    stamp,
                    unique: None,
                    ..item
                }),
            );
            draw.set(from, None);
            if replaces { line("OK") } else { int(1) }
        }
    };
    Command::new(name, [draw.key(from), draw.key(to)], expected)
}

/// Expects the user's own keys for which `has` holds, in a listing with or without data.
fn listing(draw: &Draw<'_>, mut has: impl FnMut(&[u8]) -> bool, with_data: bool, ordered: bool) -> Expected {
    let items = draw.keys.all.iter().zip(&draw.truth.items[*draw.database]);
    let own = items.filter(|(key, _)| has(key)).filter_map(|(key, item)| {
        let item = item.as_ref()?;
        Some((key.clone(), with_data.then(|| item.data.clone())))
    });
    Expected::Keys {
        own: own.collect(),
        user: draw.user,
        ordered,
    }
}

/// Draws the options of a walk, and returns them with the expected listing.
fn walk(draw: &mut Draw<'_>, has: impl FnMut(&[u8]) -> bool, reverse: bool) -> (Vec<String>, Expected) {
    let with_data = draw.random.one_in(3);
    let mut words = Vec::new();
    if reverse {
        words.push("REV".to_owned());
    }
    if !draw.keys.ordered {
        return (words, error(&format!("ERR {}", IndexError::Unordered)));
    }
    let Expected::Keys { mut own, user, .. } = listing(draw, has, with_data, true) else {
        return (words, Expected::Any);
    };
    if reverse {
        own.reverse();
    }
    // In the shared database a limit would also count other users' keys.
    if *draw.database == OWN && draw.random.one_in(2) {
        let max = draw.random.below(20) as usize;
        words.extend(["LIMIT".to_owned(), max.to_string()]);
        own.truncate(max);
    }
    if with_data {
        words.push("WITHVALUES".to_owned());
    }
    // Without own keys the expectation cannot say that data follow each key, so other users' entries would be misread.
    // The own database has no other users' keys.
    let expected = match own.is_empty() && with_data && *draw.database != OWN {
        true => Expected::Any,
        false => Expected::Keys {
            own,
            user,
            ordered: true,
        },
    };
    (words, expected)
}

fn krange(draw: &mut Draw<'_>) -> Command {
    let (a, b) = (draw.place().1, draw.place().1);
    let (low, high) = (a.min(b), a.max(b).min(a.min(b) + 60));
    let (with_low, with_high) = (draw.random.one_in(2), draw.random.one_in(2));
    let bound = |n: usize, with: bool| [if with { b"[" } else { &b"("[..] }, &draw.keys.all[n]].concat();
    let (least, max) = (bound(low, with_low), bound(high, with_high));
    let keys = draw.keys;
    let (low, high) = (&keys.all[low], &keys.all[high]);
    let has =
        move |key: &[u8]| (key > low || with_low && key == low) && (key < high || with_high && key == high);
    let reverse = draw.random.one_in(2);
    let (words, expected) = walk(draw, has, reverse);
    let bounds = if reverse { [max, least] } else { [least, max] };
    Command::new("KRANGE", bounds, expected).with(words)
}

fn kprefix(draw: &mut Draw<'_>) -> Command {
    let place = draw.place();
    let key = draw.key(place);
    let len = 1 + draw.random.index(key.len());
    let prefix = key[..len.min(key.len())].to_vec();
    let has = |key: &[u8]| key.starts_with(&prefix);
    let reverse = draw.random.one_in(2);
    let (words, expected) = walk(draw, has, reverse);
    Command::new("KPREFIX", [prefix.clone()], expected).with(words)
}

fn random_key(draw: &mut Draw<'_>) -> Command {
    let keys = draw.keys.all.iter().zip(&draw.truth.items[OWN]);
    let keys = keys.filter(|(_, item)| item.is_some());
    let mut some: Vec<_> = keys.map(|(key, _)| Reply::Bulk(key.as_slice().into())).collect();
    if some.is_empty() {
        some.push(Reply::Null);
    }
    let expected = match *draw.database {
        OWN => Expected::OneOf(some),
        _ => Expected::Any,
    };
    Command::new("RANDOMKEY", [""; 0], expected)
}

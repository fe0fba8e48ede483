//! Draws memcached's requests: the classic commands here, the meta commands in `meta`.

use super::edits::{NOT_NUMBER, joined, leading_number, lifetime, put_number, touch, unique};
use super::meta;
use super::reply::{Expected, Reply, Word};
use super::step::{Draw, Step};
use super::truth::Place;
use super::wire::Protocol;

/// The commands to draw from; frequent ones occur several times.
const NAMES: [&str; 32] = [
    "get", "get", "get", "gets", "gets", "gets", "gat", "gats", "set", "set", "set", "set", "set", "add",
    "replace", "append", "prepend", "cas", "cas", "incr", "incr", "decr", "delete", "delete", "touch", "mg",
    "mg", "ms", "ms", "md", "ma", "other",
];

/// Draws the next request.
pub(super) fn draw(draw: &mut Draw<'_>) -> Step {
    match draw.random.pick(&NAMES) {
        name @ ("get" | "gets" | "gat" | "gats") => lookup(draw, name),
        name @ ("set" | "add" | "replace" | "append" | "prepend" | "cas") => store(draw, name),
        name @ ("incr" | "decr") => count(draw, name),
        "delete" => {
            let place = draw.text_place();
            let answer = match draw.item(place) {
                Some(_) => "DELETED",
                None => "NOT_FOUND",
            };
            draw.set(place, None);
            line(draw, "delete", place, "", answer)
        }
        "touch" => {
            let place = draw.text_place();
            let (word, life) = lifetime(draw);
            let answer = match touch(draw, place, life) {
                Some(_) => "TOUCHED",
                None => "NOT_FOUND",
            };
            line(draw, "touch", place, &word, answer)
        }
        "mg" => meta::get(draw),
        "ms" => meta::set(draw),
        "md" => meta::delete(draw),
        "ma" => meta::count(draw),
        _ => other(draw),
    }
}

/// Returns an `mn` request; its answer shows that the server has carried out the requests before it.
pub(super) fn noop(draw: &mut Draw<'_>) -> Step {
    let expected = vec![Expected::Is(Reply::line("MN"))];
    draw.step("mn", Protocol::Memcached, b"mn\r\n".to_vec(), expected)
}

fn other(draw: &mut Draw<'_>) -> Step {
    let (name, request, answer): (_, &[u8], _) = match draw.random.below(6) {
        0 => ("version", b"version\r\n", Expected::Any),
        1 => ("verbosity", b"verbosity 1\r\n", Expected::Is(Reply::line("OK"))),
        2 => return meta::debug(draw),
        3 => ("wrong", b"get\r\n", Expected::Is(Reply::line("ERROR"))),
        _ => return noop(draw),
    };
    draw.step(name, Protocol::Memcached, request.to_vec(), vec![answer])
}

fn lookup(draw: &mut Draw<'_>, name: &'static str) -> Step {
    let mut request = name.as_bytes().to_vec();
    let touches = name.starts_with("gat");
    let (word, life) = lifetime(draw);
    if touches {
        request.extend(format!(" {word}").bytes());
    }
    let mut values = Vec::new();
    for _ in 0..1 + draw.random.below(4) {
        let place = draw.text_place();
        request.push(b' ');
        request.extend(draw.key(place));
        let found = match touches {
            true => touch(draw, place, life),
            false => draw.item(place),
        };
        let Some(item) = found else { continue };
        let mut words = vec![
            Word::is("VALUE"),
            Word::is(draw.key(place)),
            Word::is(item.flags.to_string()),
            Word::is(item.data.len().to_string()),
        ];
        if name.ends_with('s') {
            words.push(Word::Unique("", place, item.stamp));
        }
        values.push(Expected::Value(words, item.data));
    }
    request.extend(b"\r\n");
    draw.step(name, Protocol::Memcached, request, vec![Expected::All(values)])
}

fn store(draw: &mut Draw<'_>, name: &'static str) -> Step {
    let place = draw.text_place();
    let (word, life) = lifetime(draw);
    let flags = draw.random.pick(&[0, 0, 7, u32::MAX]);
    let data = draw.data();
    let old = draw.item(place);
    let (unique, right) = unique(draw, place);
    let answer = match (name, old) {
        ("set", _) | ("add", None) | ("replace", Some(_)) => {
            draw.put(place, data.clone(), flags, 0, life);
            "STORED"
        }
        ("cas", Some(_)) if right => {
            draw.put(place, data.clone(), flags, 0, life);
            "STORED"
        }
        ("cas", Some(_)) => "EXISTS",
        ("cas", None) => "NOT_FOUND",
        ("append" | "prepend", Some(old)) if old.data.len() + data.len() <= 1 << 20 => {
            let parts = match name {
                "append" => [&*old.data, &*data],
                _ => [&*data, &*old.data],
            };
            draw.put(place, joined(parts), old.flags, 0, Draw::life_of(&old));
            "STORED"
        }
        _ => "NOT_STORED",
    };
    let quiet = draw.quiet();
    let mut request = format!("{name} ").into_bytes();
    request.extend(draw.key(place));
    request.extend(format!(" {flags} {word} {}", data.len()).bytes());
    if name == "cas" {
        request.extend(format!(" {unique}").bytes());
    }
    request.extend(if quiet { &b" noreply\r\n"[..] } else { b"\r\n" });
    request.extend(&*data);
    request.extend(b"\r\n");
    let mut step = draw.step(name, Protocol::Memcached, request, answers(answer, quiet));
    step.may_be_grouped = name == "set";
    step
}

fn answers(answer: &str, quiet: bool) -> Vec<Expected> {
    let answer = (!quiet).then(|| Expected::Is(Reply::line(answer)));
    answer.into_iter().collect()
}

/// Returns a one-line request about one key.
fn line(draw: &mut Draw<'_>, name: &'static str, place: Place, word: &str, answer: &str) -> Step {
    let quiet = draw.quiet();
    let mut request = format!("{name} ").into_bytes();
    request.extend(draw.key(place));
    if !word.is_empty() {
        request.extend(format!(" {word}").bytes());
    }
    request.extend(if quiet { &b" noreply\r\n"[..] } else { b"\r\n" });
    draw.step(name, Protocol::Memcached, request, answers(answer, quiet))
}

fn count(draw: &mut Draw<'_>, name: &'static str) -> Step {
    let place = draw.text_place();
    let delta = draw.random.pick(&[0, 1, 1, 9, 1000, 1 << 40]);
    let answer = match draw.item(place) {
        None => "NOT_FOUND".to_owned(),
        Some(old) => match leading_number(&old.data) {
            None => NOT_NUMBER.to_owned(),
            Some(number) => {
                let number = match name {
                    "incr" => number.wrapping_add(delta),
                    _ => number.saturating_sub(delta),
                };
                put_number(draw, place, &old, number);
                number.to_string()
            }
        },
    };
    line(draw, name, place, &delta.to_string(), &answer)
}

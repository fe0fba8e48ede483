//! Meta commands that write, except `mg`: `ms`, `md`, `ma`.

use super::command::{Command, Shown};
use crate::server::edits::{NOT_NUMBER, joined, leading_number, lifetime, put_number, unique};
use crate::server::reply::{Expected, Reply};
use crate::server::step::{Draw, Life, Step};
use crate::server::truth::{AWAITED, BINARY_KEY, End, Item, STALE};

/// Returns the marks of an item whose key came in base64 (`binary`) or as text.
fn marks(binary: bool) -> u8 {
    if binary { BINARY_KEY } else { 0 }
}

/// Draws an `ms`, in any of its modes: `A` appends, `P` prepends, `E` adds, `R` replaces, `S` sets.
pub fn set(draw: &mut Draw<'_>) -> Step {
    let mut command = Command::draw(draw);
    let place = command.place;
    let old = draw.item(place);
    let data = draw.data();
    let (word, life) = lifetime(draw);
    let flags = draw.random.pick(&[0, 5]);
    let mode = draw.random.pick(&["S", "S", "E", "A", "P", "R"]);
    command.flags.extend([format!("T{word}"), format!("F{flags}")]);
    if mode != "S" || draw.random.one_in(2) {
        command.flags.push(format!("M{mode}"));
    }
    let (unique, right) = unique(draw, place);
    let compares = mode == "S" && draw.random.one_in(3);
    if compares {
        command.flags.push(format!("C{unique}"));
    }
    command.some_of(draw, &["c", "k", "O1", "q"]);
    let mut request = command.request(draw, "ms", Some(data.len()));
    request.extend(&*data);
    request.extend(b"\r\n");
    let marks = marks(command.binary);
    let stored = match (mode, &old) {
        ("S", Some(_)) if compares && !right => Err("EX"),
        ("S", None) if compares => Err("NF"),
        ("S", _) | ("E", None) | ("R", Some(_)) => Ok(draw.put(place, data, flags, marks, life)),
        ("A" | "P", Some(old)) if old.data.len() + data.len() <= 1 << 20 => {
            let parts = match mode {
                "A" => [&*old.data, &*data],
                _ => [&*data, &*old.data],
            };
            Ok(draw.put(place, joined(parts), old.flags, 0, Draw::life_of(old)))
        }
        _ => Err("NS"),
    };
    let (first, stamp) = match stored {
        Ok(stamp) => ("HD", Some(stamp)),
        Err(first) => (first, None),
    };
    let words = command.words(draw, &[first], Shown::Stored(stamp), command.binary);
    let quiet = command.has("q") && stamp.is_some();
    command.step(draw, "ms", request, (!quiet).then_some(Expected::Line(words)))
}

/// Draws an `md`, which removes the item or makes it stale.
pub fn delete(draw: &mut Draw<'_>) -> Step {
    let mut command = Command::draw(draw);
    let place = command.place;
    let old = draw.item(place);
    let (unique, right) = unique(draw, place);
    let compares = draw.random.one_in(3);
    if compares {
        command.flags.push(format!("C{unique}"));
    }
    let invalidates = draw.random.one_in(2);
    let mut new_life = None;
    if invalidates {
        command.flags.push("I".into());
        if draw.random.one_in(2) {
            let (word, given) = lifetime(draw);
            command.flags.push(format!("T{word}"));
            new_life = Some(given);
        }
    }
    command.some_of(draw, &["k", "Oq", "q"]);
    let request = command.request(draw, "md", None);
    let first = match old {
        None => "NF",
        Some(_) if compares && !right => "EX",
        Some(old) => {
            let life = new_life.unwrap_or(Draw::life_of(&old));
            match invalidates {
                true => _ = draw.put(place, old.data, old.flags, (old.marks | STALE) & !AWAITED, life),
                false => draw.set(place, None),
            }
            "HD"
        }
    };
    let words = command.words(draw, &[first], Shown::Nothing, command.binary);
    let quiet = command.has("q") && first == "HD";
    command.step(draw, "md", request, (!quiet).then_some(Expected::Line(words)))
}

/// Draws an `ma`, which increments or decrements.
pub fn count(draw: &mut Draw<'_>) -> Step {
    let mut command = Command::draw(draw);
    let place = command.place;
    let old = draw.item(place);
    let delta = draw.random.pick(&[0u64, 1, 7, 1 << 33]);
    let down = draw.random.one_in(2);
    command
        .flags
        .extend([format!("D{delta}"), (if down { "MD" } else { "MI" }).into()]);
    let (mut vivified, mut touched) = (None, None);
    if draw.random.one_in(2) {
        command.flags.extend(["N40000".to_owned(), "J13".to_owned()]);
        vivified = Some(Life::Until(End::after(40_000_000)));
    }
    if draw.random.one_in(4) {
        let seconds = 30_000;
        command.flags.push(format!("T{seconds}"));
        touched = Some(Life::Until(End::after(seconds * 1000)));
    }
    let (unique, right) = unique(draw, place);
    let compares = draw.random.one_in(4);
    if compares {
        command.flags.push(format!("C{unique}"));
    }
    command.some_of(draw, &["v", "t", "c", "k", "Ox", "q"]);
    let request = command.request(draw, "ma", None);
    let failed = |first: &str, draw: &Draw<'_>| {
        let words = command.words(draw, &[first], Shown::Nothing, command.binary);
        Some(Expected::Line(words))
    };
    let not_number = Some(Expected::Is(Reply::line(NOT_NUMBER)));
    let number = match (&old, vivified) {
        (None, None) => {
            let answer = failed("NF", draw);
            return command.step(draw, "ma", request, answer);
        }
        (None, Some(_)) => 13,
        // As in memcached, an empty value is refused before the unique is compared.
        (Some(old), _) if old.data.is_empty() => return command.step(draw, "ma", request, not_number),
        (Some(_), _) if compares && !right => {
            let answer = failed("EX", draw);
            return command.step(draw, "ma", request, answer);
        }
        (Some(old), _) => match leading_number(&old.data) {
            None => return command.step(draw, "ma", request, not_number),
            Some(number) if down => number.saturating_sub(delta),
            Some(number) => number.wrapping_add(delta),
        },
    };
    match (&old, vivified) {
        (Some(old), _) => {
            let end = match touched {
                Some(Life::Until(end)) => Some(end),
                _ => old.end,
            };
            put_number(draw, place, &Item { end, ..old.clone() }, number);
        }
        (None, life) => {
            let text = number.to_string().into_bytes();
            // `N` comes before `T`, and the last of them counts.
            let life = touched.or(life).unwrap_or(Life::Endless);
            draw.put(place, text.into(), 0, 0, life);
        }
    }
    let item = draw.item(place);
    let shown = item.as_ref().map_or(Shown::Nothing, Shown::Item);
    let data = number.to_string().into_bytes().into();
    let answer = command.answer(draw, shown, command.binary, &data, &[]);
    let quiet = command.has("q") && old.is_some();
    command.step(draw, "ma", request, (!quiet).then_some(answer))
}

//! Draws memcached's meta commands.

use super::edits::{NOT_NUMBER, joined, leading_number, lifetime, put_number, touch, unique};
use super::reply::{Expected, Reply, Word};
use super::step::{Draw, Life, Step};
use super::truth::{AWAITED, BINARY_KEY, End, Item, Place, STALE};
use super::wire::Protocol;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// A command about one key.
struct Command {
    place: Place,
    binary: bool,
    /// The flags, a word each.
    flags: Vec<String>,
}

impl Command {
    fn draw(draw: &mut Draw<'_>) -> Command {
        let place = draw.shared_place();
        let in_text = draw.keys.in_text.binary_search(&place.1).is_ok();
        let binary = !in_text || draw.random.one_in(4);
        Command {
            place,
            binary,
            flags: Vec::new(),
        }
    }

    /// Adds some of these flags, in random order.
    fn some_of(&mut self, draw: &mut Draw<'_>, flags: &[&str]) {
        let may_be_quiet = draw.may_be_quiet;
        let may_be = |flag: &&&str| may_be_quiet || **flag != "q";
        let mut some: Vec<_> = flags
            .iter()
            .filter(may_be)
            .filter(|_| draw.random.one_in(2))
            .collect();
        while !some.is_empty() {
            let flag = some.swap_remove(draw.random.index(some.len()));
            self.flags.push((*flag).to_owned());
        }
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|have| have == flag)
    }

    /// Returns the request, with `size` after the key if data follow.
    fn request(&self, draw: &Draw<'_>, name: &str, size: Option<usize>) -> Vec<u8> {
        let mut request = format!("{name} ").into_bytes();
        let key = draw.key(self.place);
        match self.binary {
            true => request.extend(BASE64_STANDARD.encode(key).bytes()),
            false => request.extend(key),
        }
        request.extend(size.map(|size| format!(" {size}")).unwrap_or_default().bytes());
        if self.binary {
            request.extend(b" b");
        }
        for flag in &self.flags {
            request.extend(format!(" {flag}").bytes());
        }
        request.extend(b"\r\n");
        request
    }

    /// Returns the words of the answer: `first`, then those that the flags request. `item` is the item that the command
    /// shows.
    fn words(&self, draw: &Draw<'_>, first: &[&str], item: Option<&Item>, binary: bool) -> Vec<Word> {
        let mut words: Vec<_> = first.iter().map(|word| Word::is(*word)).collect();
        for flag in &self.flags {
            match (flag.as_bytes()[0], item) {
                (b'O', _) => words.push(Word::is(flag.as_str())),
                (b'k', _) => {
                    let key = draw.key(self.place);
                    match binary || draw.keys.in_text.binary_search(&self.place.1).is_err() {
                        true => {
                            words.push(Word::is(format!("k{}", BASE64_STANDARD.encode(key))));
                            words.push(Word::is("b"));
                        }
                        false => words.push(Word::is([b"k", key].concat())),
                    }
                }
                (b's', Some(item)) => words.push(Word::is(format!("s{}", item.data.len()))),
                (b'f', Some(item)) => words.push(Word::is(format!("f{}", item.flags))),
                (b't', Some(item)) => words.push(Word::Left(item.end)),
                (b'c', Some(item)) => words.push(Word::Unique("c", self.place, item.stamp)),
                _ => {}
            }
        }
        words
    }

    fn step(
        &self,
        draw: &mut Draw<'_>,
        name: &'static str,
        request: Vec<u8>,
        answer: Option<Expected>,
    ) -> Step {
        draw.step(name, Protocol::Memcached, request, answer.into_iter().collect())
    }
}

/// Returns the marks of an item whose key came in base64 (`binary`) or as text.
fn marks(binary: bool) -> u8 {
    if binary { BINARY_KEY } else { 0 }
}

/// Draws an `mg`, which may touch the item, create it, and choose the client to replace it.
pub(super) fn get(draw: &mut Draw<'_>) -> Step {
    let mut command = Command::draw(draw);
    let place = command.place;
    let old = draw.item(place);
    let (mut touched, mut vivified, mut soon) = (None, None, false);
    match draw.random.below(10) {
        0 | 1 => {
            let (word, life) = lifetime(draw);
            command.flags.push(format!("T{word}"));
            touched = Some(life);
        }
        2 => {
            command.flags.push("N30000".into());
            vivified = Some(Life::Until(End::after(30_000_000)));
        }
        3 => {
            // A threshold above every relative lifetime, or below every lifetime.
            soon = draw.random.one_in(2);
            command.flags.push(if soon { "R2500000" } else { "R30" }.into());
            // An absolute time may lie beyond even the high threshold.
            let may_be_later = |item: &Item| {
                item.end
                    .is_some_and(|end| end.low > End::after(2_300_000_000).low)
            };
            if soon && old.as_ref().is_some_and(may_be_later) {
                command.flags.pop();
                soon = false;
            }
        }
        _ => {}
    }
    command.some_of(draw, &["v", "f", "s", "c", "k", "Oabc", "q"]);
    // If the command lets the item expire immediately, its remaining lifetime depends on the clock.
    if !matches!(touched, Some(Life::Expired)) {
        command.some_of(draw, &["t"]);
    }
    let request = command.request(draw, "mg", None);
    let made = old.is_none() && vivified.is_some();
    if let (true, Some(life)) = (made, vivified) {
        draw.put(place, [].into(), 0, 0, life);
    }
    if let Some(life) = touched {
        let shown = touch(draw, place, life);
        // An item that expires by this command is shown once more.
        if let (Life::Expired, Some(item)) = (life, shown) {
            let won = item.marks & (STALE | AWAITED) == STALE;
            let answer = shown_item(draw, &command, &item, won);
            return command.step(draw, "mg", request, Some(answer));
        }
    }
    let Some(item) = draw.item(place) else {
        let words = command.words(draw, &["EN"], None, command.binary);
        let answer = (!command.has("q")).then_some(Expected::Line(words));
        return command.step(draw, "mg", request, answer);
    };
    let awaited = item.marks & AWAITED != 0;
    let won = made || !awaited && (item.marks & STALE != 0 || soon && item.end.is_some());
    let answer = shown_item(draw, &command, &item, won);
    if won {
        let marks = item.marks | AWAITED;
        draw.set(place, Some(Item { marks, ..item }));
    }
    command.step(draw, "mg", request, Some(answer))
}

fn shown_item(draw: &Draw<'_>, command: &Command, item: &Item, won: bool) -> Expected {
    let len = item.data.len().to_string();
    let first: &[&str] = if command.has("v") { &["VA", &len] } else { &["HD"] };
    let mut words = command.words(draw, first, Some(item), item.marks & BINARY_KEY != 0);
    let marks = [
        (item.marks & AWAITED != 0, "Z"),
        (item.marks & STALE != 0, "X"),
        (won, "W"),
    ];
    words.extend(marks.iter().filter(|mark| mark.0).map(|mark| Word::is(mark.1)));
    match command.has("v") {
        true => Expected::Value(words, item.data.clone()),
        false => Expected::Line(words),
    }
}

/// Draws an `ms`, in any of its modes.
pub(super) fn set(draw: &mut Draw<'_>) -> Step {
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
    let mut words = vec![Word::is(first)];
    for flag in &command.flags {
        let only = Command {
            flags: vec![flag.clone()],
            ..command
        };
        match (&**flag, stamp) {
            ("c", Some(stamp)) => words.push(Word::Unique("c", place, stamp)),
            ("c", None) => words.push(Word::is("c0")),
            ("k" | "O1", _) => words.extend(only.words(draw, &[], None, command.binary)),
            _ => {}
        }
    }
    let quiet = command.has("q") && stamp.is_some();
    command.step(draw, "ms", request, (!quiet).then_some(Expected::Line(words)))
}

/// Draws an `md`, which removes the item or makes it stale.
pub(super) fn delete(draw: &mut Draw<'_>) -> Step {
    let mut command = Command::draw(draw);
    let place = command.place;
    let old = draw.item(place);
    let (unique, right) = unique(draw, place);
    let compares = draw.random.one_in(3);
    if compares {
        command.flags.push(format!("C{unique}"));
    }
    let stales = draw.random.one_in(2);
    let mut life = None;
    if stales {
        command.flags.push("I".into());
        if draw.random.one_in(2) {
            let (word, given) = lifetime(draw);
            command.flags.push(format!("T{word}"));
            life = Some(given);
        }
    }
    command.some_of(draw, &["k", "Oq", "q"]);
    let request = command.request(draw, "md", None);
    let first = match old {
        None => "NF",
        Some(_) if compares && !right => "EX",
        Some(old) => {
            let life = life.unwrap_or(Draw::life_of(&old));
            match stales {
                true => _ = draw.put(place, old.data, old.flags, (old.marks | STALE) & !AWAITED, life),
                false => draw.set(place, None),
            }
            "HD"
        }
    };
    let words = command.words(draw, &[first], None, command.binary);
    let quiet = command.has("q") && first == "HD";
    command.step(draw, "md", request, (!quiet).then_some(Expected::Line(words)))
}

/// Draws an `ma`, which increments or decrements.
pub(super) fn count(draw: &mut Draw<'_>) -> Step {
    let mut command = Command::draw(draw);
    let place = command.place;
    let old = draw.item(place);
    let delta = draw.random.pick(&[0u64, 1, 7, 1 << 33]);
    let down = draw.random.one_in(2);
    command
        .flags
        .extend([format!("D{delta}"), (if down { "MD" } else { "MI" }).into()]);
    let (mut made, mut touched) = (None, None);
    if draw.random.one_in(2) {
        command.flags.extend(["N40000".to_owned(), "J13".to_owned()]);
        made = Some(Life::Until(End::after(40_000_000)));
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
        let words = command.words(draw, &[first], None, command.binary);
        Some(Expected::Line(words))
    };
    let not_number = Some(Expected::Is(Reply::line(NOT_NUMBER)));
    let number = match (&old, made) {
        (None, None) => {
            let answer = failed("NF", draw);
            return command.step(draw, "ma", request, answer);
        }
        (None, Some(_)) => 13,
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
    match (&old, made) {
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
    let len = number.to_string().len().to_string();
    let first: &[&str] = if command.has("v") { &["VA", &len] } else { &["HD"] };
    let words = command.words(draw, first, item.as_ref(), command.binary);
    let answer = match command.has("v") {
        true => Expected::Value(words, number.to_string().into_bytes().into()),
        false => Expected::Line(words),
    };
    let quiet = command.has("q") && old.is_some();
    command.step(draw, "ma", request, (!quiet).then_some(answer))
}

/// Draws an `me`, whose answer shows how long ago the last access was, and so depends on the clock.
pub(super) fn debug(draw: &mut Draw<'_>) -> Step {
    let command = Command::draw(draw);
    let request = command.request(draw, "me", None);
    let answer = match draw.item(command.place) {
        Some(_) => Expected::Any,
        None => Expected::Line(vec![Word::is("EN")]),
    };
    command.step(draw, "me", request, Some(answer))
}

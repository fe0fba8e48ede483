//! Random requests, right and wrong.

use super::words::*;
use crate::twin::Random;

/// Behind each batch: lines for a wrong body to swallow, and a request whose answer is known.
pub const END: &str = "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nmg the-end k\r\n";
/// How the answers to it end.
pub const ENDED: &[u8] = b"EN kthe-end\r\n";
/// For a wrong body to swallow.
const PADDING: &str = "\r\n\r\n";
/// How a batch ends after which the connection ends.
pub const ENDS: &str = "quit\r\n";

/// A batch of requests.
pub fn some(random: &mut Random) -> String {
    // A `get` of a key that is too long takes the answers before it away, there; so it comes alone.
    if random.below(40) == 0 {
        let length = 250 + random.below(3);
        return one(random, &["k".repeat(length).as_str()]);
    }
    let mut batch = String::new();
    for _ in 0..=random.below(10) {
        let request = match random.below(1500) {
            0 => PADDING.to_owned() + &large(random),
            _ => one(random, KEYS),
        };
        // There an item on its way out is not counted in place, so that its length changes: no `mg` comes before.
        if batch.contains("mg ")
            && ["ma", "incr", "decr"]
                .iter()
                .any(|count| request.starts_with(count))
        {
            break;
        }
        batch += &request;
    }
    if random.below(50) == 0 {
        batch += PADDING;
        batch += ENDS;
    }
    batch
}

/// A request on one of these keys.
fn one(random: &mut Random, keys: &[&str]) -> String {
    let mut data = None;
    let mut words = Vec::new();
    let shapes = if random.below(8) == 0 { SELDOM } else { SHAPES };
    for word in random.of(shapes).split(' ') {
        match word {
            "K" => words.push(random.of(keys).to_owned()),
            "V" => {
                let value = random.of(DATA);
                words.push(length(random, value.len()));
                data = Some(value);
            }
            "*" => flags(random, &mut words),
            word => words.push(some_word(random, word)),
        }
    }
    let end = if random.below(30) == 0 { "\n" } else { "\r\n" };
    let line = words.join(" ") + end;
    match data {
        Some(data) => line + data + "\r\n",
        None => line,
    }
}

/// A right request with much data, or too much. It has a key of its own, since no large value is a number there,
/// whatever it begins with.
fn large(random: &mut Random) -> String {
    let begin = random.of(&["set", "add", "replace", "append", "prepend"]);
    let length = [600_000, 1_000_000, 2_000_000][random.below(3)];
    let data = "x".repeat(length);
    match random.below(3) {
        0 => format!("{begin} large 0 0 {length}\r\n{data}\r\n"),
        1 => format!("{begin} large 0 0 {length} noreply\r\n{data}\r\n"),
        _ => {
            let mode = random.of(&["E", "A", "P", "R", "S"]);
            format!("ms large {length} M{mode} k\r\n{data}\r\n")
        }
    }
}

/// A word of a kind, or behind a letter.
fn some_word(random: &mut Random, word: &str) -> String {
    let (letter, kind) = match word {
        "O" | "M" => (word, word),
        "TL" | "NL" | "RR" | "FF" | "CU" | "JD" | "DD" => word.split_at(1),
        word => ("", word),
    };
    let words = match kind {
        "B" => BINARY,
        "F" => CLIENT,
        "L" => LIFETIMES,
        "D" => DELTAS,
        "U" => UNIQUES,
        "R" => SOON,
        "M" => MODES,
        "O" => OPAQUE,
        literal => return literal.to_owned(),
    };
    letter.to_owned() + words.some(random)
}

/// Up to five flags; a letter rarely comes twice.
fn flags(random: &mut Random, words: &mut Vec<String>) {
    for _ in 0..random.below(6) {
        let flag = FLAGS.some(random);
        if flag == "TL" && words[0] == "ma" {
            continue; // Lost there, where the number becomes longer.
        }
        let there = words.iter().skip(2).any(|word| word.starts_with(&flag[..1]));
        if !there || random.below(20) == 0 {
            words.push(some_word(random, flag));
        }
    }
}

/// The length that a request says its data have.
fn length(random: &mut Random, length: usize) -> String {
    match random.below(40) {
        0 => (length + 1).to_string(),
        1 => length.saturating_sub(1).to_string(),
        2 => format!("+{length}"),
        3 => random.of(LENGTHS).to_owned(),
        _ => length.to_string(),
    }
}

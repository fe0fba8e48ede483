//! Random requests, valid and invalid.

use super::words::*;
use crate::twin::Random;

/// Follows each batch: lines for a malformed body to swallow, and a request with a known answer.
pub const END: &str = "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nmg the-end k\r\n";
/// The end of its answers.
pub const ENDED: &[u8] = b"EN kthe-end\r\n";
/// Lines for a malformed body to swallow.
const PADDING: &str = "\r\n\r\n";
/// The end of a batch that ends the connection.
pub const ENDS: &str = "quit\r\n";

/// Returns a batch of requests.
pub fn some(random: &mut Random) -> String {
    // In memcached a `get` of a key that is too long drops the answers before it; so it comes alone.
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
        // memcached does not increment an item in flight in place, so its length changes: no `mg` comes before.
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

/// Returns a request on one of these keys.
fn one(random: &mut Random, keys: &[&str]) -> String {
    let mut data = None;
    let mut words = Vec::new();
    let shapes = if random.below(8) == 0 { RARE } else { SHAPES };
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

/// Returns a valid request with much data, or too much. It has a key of its own, since in memcached no large value is a
/// number, whatever it begins with.
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

/// Returns a word of a kind, or one after a letter.
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

/// Adds up to five flags; a letter rarely comes twice.
fn flags(random: &mut Random, words: &mut Vec<String>) {
    for _ in 0..random.below(6) {
        let flag = FLAGS.some(random);
        if flag == "TL" && words[0] == "ma" {
            continue; // memcached loses it when the number becomes longer.
        }
        let there = words.iter().skip(2).any(|word| word.starts_with(&flag[..1]));
        if !there || random.below(20) == 0 {
            words.push(some_word(random, flag));
        }
    }
}

/// Returns the length that a request claims for its data.
fn length(random: &mut Random, length: usize) -> String {
    match random.below(40) {
        0 => (length + 1).to_string(),
        1 => length.saturating_sub(1).to_string(),
        2 => format!("+{length}"),
        3 => random.of(LENGTHS).to_owned(),
        _ => length.to_string(),
    }
}

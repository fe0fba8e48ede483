//! The record of a client's operations. That of a process that will be killed is a file, which the page cache keeps.
//!
//! Each line of the file is a letter and numbers:
//!
//! * `P`, a part, and an operation: if the client's operation takes effect, that part of it may be this. (Each write of
//!   a group is a part.) A later line for the same part replaces it, since it then was not this.
//! * `D` and an operation: this has taken effect.
//! * `E`: the client's operation has ended. Lines `D` before it count, and lines `P` no longer do.

use super::Done;
use super::keys::{Key, POINTS};
use index::conformance::serializability::{Overwrite, RangeRead, Version};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::ops::Bound::{self, Excluded, Included, Unbounded};

/// A client's record: in memory, or in a file.
#[derive(Default)]
pub struct Journal {
    pub done: Vec<Done>,
    pub file: Option<File>,
}

impl Journal {
    /// Notes what an operation may do, before it does it.
    pub fn pending(&mut self, part: usize, done: &Done) {
        if let Some(file) = &mut self.file {
            let line = format!("P {part}{}\n", encode(done));
            file.write_all(line.as_bytes()).expect("room");
        }
    }

    /// Notes that an operation has ended, and what it did.
    pub fn ended(&mut self, all: Vec<Done>) {
        match &mut self.file {
            None => self.done.extend(all),
            Some(file) => {
                let mut lines = String::new();
                for done in &all {
                    _ = writeln!(lines, "D{}", encode(done));
                }
                lines.push_str("E\n");
                file.write_all(lines.as_bytes()).expect("room");
            }
        }
    }
}

/// Returns the operations in a journal that have ended, and the parts of the one that had not.
pub fn read(text: &str) -> (Vec<Done>, Vec<Done>) {
    let (mut ended, mut done, mut pending) = (Vec::new(), Vec::new(), BTreeMap::new());
    // The kill may have cut the last line.
    for line in text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'))
    {
        let mut words = line.split(' ');
        let letter = words.next();
        let mut numbers = words.map(|word| word.parse().expect("a number"));
        match letter {
            Some("P") => {
                let part = numbers.next().expect("a part");
                pending.insert(part, decode(&mut numbers));
            }
            Some("D") => done.push(decode(&mut numbers)),
            _ => {
                ended.append(&mut done);
                pending.clear();
            }
        }
    }
    (ended, pending.into_values().collect())
}

fn encode(done: &Done) -> String {
    let mut text = format!(" {} {}", done.began, done.ended);
    let mut number = |number: u64| _ = write!(text, " {number}");
    let seen = |seen: &[(Key, Version)], number: &mut dyn FnMut(u64)| {
        number(seen.len() as u64);
        for (key, version) in seen {
            encode_key(*key, number);
            number(*version);
        }
    };
    seen(&done.reads, &mut number);
    number(done.scans.len() as u64);
    for scan in &done.scans {
        encode_bound(scan.bounds.0, &mut number);
        encode_bound(scan.bounds.1, &mut number);
        seen(&scan.found, &mut number);
    }
    number(done.writes.len() as u64);
    for write in &done.writes {
        encode_key(write.key, &mut number);
        number(write.replaced);
        number(write.new);
    }
    text
}

fn encode_key((map, key): Key, number: &mut dyn FnMut(u64)) {
    let place = POINTS.into_iter().position(|point| point == key);
    number(map as u64);
    number(place.expect("a point") as u64);
}

fn encode_bound(bound: Bound<Key>, number: &mut dyn FnMut(u64)) {
    match bound {
        Unbounded => number(0),
        Included(key) => {
            number(1);
            encode_key(key, number);
        }
        Excluded(key) => {
            number(2);
            encode_key(key, number);
        }
    }
}

fn decode(numbers: &mut impl Iterator<Item = u64>) -> Done {
    let mut done = Done::between(next(numbers), next(numbers));
    done.reads = decode_seen(numbers);
    for _ in 0..next(numbers) {
        let bounds = (decode_bound(numbers), decode_bound(numbers));
        let found = decode_seen(numbers);
        done.scans.push(RangeRead { bounds, found });
    }
    for _ in 0..next(numbers) {
        let key = decode_key(numbers);
        let (replaced, new) = (next(numbers), next(numbers));
        done.writes.push(Overwrite { key, replaced, new });
    }
    done
}

fn next(numbers: &mut impl Iterator<Item = u64>) -> u64 {
    numbers.next().expect("a number")
}

fn decode_key(numbers: &mut impl Iterator<Item = u64>) -> Key {
    (next(numbers) as usize, POINTS[next(numbers) as usize])
}

fn decode_seen(numbers: &mut impl Iterator<Item = u64>) -> Vec<(Key, Version)> {
    let many = next(numbers);
    (0..many).map(|_| (decode_key(numbers), next(numbers))).collect()
}

fn decode_bound(numbers: &mut impl Iterator<Item = u64>) -> Bound<Key> {
    match next(numbers) {
        0 => Unbounded,
        1 => Included(decode_key(numbers)),
        _ => Excluded(decode_key(numbers)),
    }
}

/// What was written is read again, but for a line that was cut.
#[test]
fn a_journal_is_read_again() {
    let scan = (Included((1, &b"a"[..])), Excluded((2, &b""[..])));
    let done = Done::between(3, 4).read((0, b"b\xff"), 5).wrote((2, b""), 0, 7);
    let done = done.scanned(scan, [((1, &b"ab"[..]), 9)]);
    let line = |letter: &str| format!("{letter}{}\n", encode(&done));
    let text = [
        line("P 0"),
        line("P 1"),
        line("D"),
        "E\n".to_owned(),
        line("P 0"),
        line("P 0"),
        line("D"),
    ];
    let (ended, pending) = read(&text.concat());
    assert_eq!((ended, pending), (vec![done.clone()], vec![done.clone()]));
    let text = text.concat();
    let (ended, pending) = read(
        text.strip_suffix('\n')
            .expect("a line")
            .strip_suffix('7')
            .expect("a number"),
    );
    assert_eq!((ended, pending), (vec![done.clone()], vec![done]));
}

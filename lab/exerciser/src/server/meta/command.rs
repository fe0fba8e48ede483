//! A meta command: a key and flags, and the words that the flags add to the answer.

use crate::server::reply::{Expected, Word};
use crate::server::step::{Draw, Step};
use crate::server::truth::{Item, Place};
use crate::server::wire::Protocol;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;

/// A command about one key.
pub struct Command {
    pub place: Place,
    /// Whether the request has the key in base64.
    pub binary: bool,
    /// The flags, a word each.
    pub flags: Vec<String>,
}

/// What an answer shows besides the flags `O` and `k`.
#[derive(Clone, Copy)]
pub enum Shown<'a> {
    /// The item after the command.
    Item(&'a Item),
    /// The stamp of the stored item, as its unique; `c0` if nothing was stored.
    Stored(Option<u64>),
    Nothing,
}

impl Command {
    pub fn draw(draw: &mut Draw<'_>) -> Command {
        let place = draw.shared_place();
        let in_text = draw.keys.in_text.binary_search(&place.1).is_ok();
        let binary = !in_text || draw.random.one_in(4);
        Command {
            place,
            binary,
            flags: Vec::new(),
        }
    }

    /// Adds each of these flags with probability one half, in random order; never `q` where requests must be answered.
    pub fn some_of(&mut self, draw: &mut Draw<'_>, flags: &[&str]) {
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

    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|have| have == flag)
    }

    /// Returns the request, with `size` after the key if data follow.
    pub fn request(&self, draw: &Draw<'_>, name: &str, size: Option<usize>) -> Vec<u8> {
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

    /// Returns the words of the answer: `first`, then those that the flags request. `binary`: `k` shows the key in
    /// base64.
    pub fn words(&self, draw: &Draw<'_>, first: &[&str], shown: Shown<'_>, binary: bool) -> Vec<Word> {
        let mut words: Vec<_> = first.iter().map(|word| Word::is(*word)).collect();
        for flag in &self.flags {
            match (flag.as_bytes()[0], shown) {
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
                (b's', Shown::Item(item)) => words.push(Word::is(format!("s{}", item.data.len()))),
                (b'f', Shown::Item(item)) => words.push(Word::is(format!("f{}", item.flags))),
                (b't', Shown::Item(item)) => words.push(Word::Left(item.end)),
                (b'c', Shown::Item(&Item { stamp, .. }) | Shown::Stored(Some(stamp))) => {
                    words.push(Word::Unique("c", self.place, stamp));
                }
                (b'c', Shown::Stored(None)) => words.push(Word::is("c0")),
                _ => {}
            }
        }
        words
    }

    /// Returns the answer of a command that succeeds: with `v` the data, then the words that the flags request, then
    /// `marks`.
    pub fn answer(
        &self,
        draw: &Draw<'_>,
        shown: Shown<'_>,
        binary: bool,
        data: &Arc<[u8]>,
        marks: &[&str],
    ) -> Expected {
        let len = data.len().to_string();
        let first: &[&str] = if self.has("v") { &["VA", &len] } else { &["HD"] };
        let mut words = self.words(draw, first, shown, binary);
        words.extend(marks.iter().map(|mark| Word::is(*mark)));
        match self.has("v") {
            true => Expected::Value(words, data.clone()),
            false => Expected::Line(words),
        }
    }

    pub fn step(
        &self,
        draw: &mut Draw<'_>,
        name: &'static str,
        request: Vec<u8>,
        answer: Option<Expected>,
    ) -> Step {
        draw.step(name, Protocol::Memcached, request, answer.into_iter().collect())
    }
}

//! The permitted differences between two memcacheds that got the same requests: their uniques, and values that depend
//! on the current second.

use std::fmt::Write;

/// The uniques that a server has shown, in order of appearance: both sides are known by their index.
#[derive(Default)]
pub struct Uniques {
    seen: Vec<u64>,
}

impl Uniques {
    /// Returns a request as this server gets it: `{n}` stands for the n-th latest unique.
    pub fn filled_in(&self, requests: &str) -> String {
        let mut parts = requests.split('{');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (back, rest) = part.split_once('}').expect("a closing brace");
            let back: usize = back.parse().expect("a number");
            let latest = &self.seen[self.seen.len().saturating_sub(back)..];
            let unique = latest.first().copied().unwrap_or(u64::MAX);
            write!(text, "{unique}{rest}").expect("a string grows");
        }
        text
    }

    /// Returns the index of a unique.
    fn known(&mut self, text: &str) -> String {
        let Some(unique) = text.parse().ok().filter(|&unique| unique != 0) else {
            return format!("no unique: {text}"); // 0: nothing was stored.
        };
        let at = self.seen.iter().rposition(|&seen| seen == unique);
        let at = at.unwrap_or_else(|| {
            self.seen.push(unique);
            self.seen.len() - 1
        });
        format!("#{at}")
    }

    /// Returns an answer without the permitted differences, one string per line.
    pub fn masked(&mut self, mut answer: &[u8]) -> Vec<String> {
        let mut masked = Vec::new();
        while !answer.is_empty() {
            let end = answer.iter().position(|&byte| byte == b'\n');
            let (line, rest) = answer.split_at(end.map_or(answer.len(), |end| end + 1));
            answer = rest;
            let line = line.escape_ascii().to_string();
            let words: Vec<&str> = line.split(' ').collect();
            let mut data = None;
            let shown = match words[..] {
                ["VALUE", _, _, length] => {
                    data = Some(length);
                    line.clone()
                }
                ["VALUE", key, flags, length, unique] => {
                    data = Some(length);
                    let unique = self.known(&unique[..unique.len() - 4]);
                    format!("VALUE {key} {flags} {length} {unique}")
                }
                ["VA", length, ..] => {
                    data = Some(length);
                    self.each(&words, Uniques::flag)
                }
                ["HD" | "NS" | "EX" | "NF", ..] => self.each(&words, Uniques::flag),
                ["ME", ..] => self.each(&words, Uniques::debug),
                ["VERSION", ..] => "VERSION".to_owned(),
                _ => line.clone(),
            };
            masked.push(shown);
            let length = data.map_or(0, |length| {
                length
                    .trim_end_matches("\\r\\n")
                    .parse::<usize>()
                    .map_or(0, |length| length + 2)
            });
            let (data, rest) = answer.split_at(length.min(answer.len()));
            answer = rest;
            masked.extend((!data.is_empty()).then(|| crate::support::shown(data)));
        }
        masked
    }

    fn each(&mut self, words: &[&str], mask: fn(&mut Uniques, &str) -> String) -> String {
        let masked: Vec<_> = words
            .iter()
            .map(|word| {
                let bare = word.trim_end_matches("\\r\\n");
                mask(self, bare) + &word[bare.len()..]
            })
            .collect();
        masked.join(" ")
    }

    /// Masks a flag of an answer.
    fn flag(&mut self, word: &str) -> String {
        match word.as_bytes().first() {
            Some(b'c') => format!("c{}", self.known(&word[1..])),
            Some(b't') => format!("t{}", left(&word[1..])),
            Some(b'l') => "l".to_owned(),
            _ => word.to_owned(),
        }
    }

    /// Masks a word of `me`'s answer.
    fn debug(&mut self, word: &str) -> String {
        match word.split_once('=') {
            Some(("exp", time)) => format!("exp={}", left(time.trim_start_matches('-'))),
            Some(("cas", unique)) => format!("cas={}", self.known(unique)),
            Some((name @ ("la" | "cls" | "size"), _)) => name.to_owned(),
            _ => word.to_owned(),
        }
    }
}

/// Converts the remaining seconds to the original lifetime.
fn left(text: &str) -> String {
    let left = match text.parse::<u64>() {
        // For an item that is dead at once: memcached shows a negative number, in 32 bits without a sign.
        Ok(left) if left == 0 || left > i32::MAX as u64 => return "none".to_owned(),
        Ok(left) => left,
        Err(_) => return text.to_owned(), // -1, for items that stay.
    };
    let of = super::words::LEFT.iter().find(|&&lifetime| left <= lifetime);
    of.map_or_else(|| "long".to_owned(), u64::to_string)
}

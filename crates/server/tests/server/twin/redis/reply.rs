//! Parses replies into their parts, for those that differ in order, or in values specific to a server.

use super::encoded;
use crate::support::Client;

/// A reply of either protocol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reply {
    /// Its type mark.
    pub kind: char,
    /// The text of its line, or the bytes of a bulk string.
    pub text: String,
    /// Its elements; for a map, each key before its value.
    pub parts: Vec<Reply>,
}

impl Reply {
    /// Returns a server's reply to a command.
    pub fn to(client: &mut Client, words: &[&str]) -> Reply {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        client.send(encoded(&words).as_bytes());
        Reply::read(client)
    }

    /// Returns a server's reply to an inline command. The parts of `KEYS` have no order.
    pub fn to_line(client: &mut Client, line: &str) -> Reply {
        client.send(format!("{line}\r\n").as_bytes());
        let reply = Reply::read(client);
        match line.starts_with("KEYS ") {
            true => reply.into_set(),
            false => reply,
        }
    }

    fn read(client: &mut Client) -> Reply {
        let line = client.line();
        let (kind, text) = line.split_at(1);
        let kind = kind.chars().next().expect("a mark");
        let length = || text.parse::<i64>().expect("a length").max(0) as usize;
        let (mut text, mut parts) = (text.to_owned(), Vec::new());
        match kind {
            '$' | '=' if text != "-1" => {
                let bytes = client.read(length() + 2);
                text = bytes[..bytes.len() - 2].escape_ascii().to_string();
            }
            '*' | '~' => parts = (0..length()).map(|_| Reply::read(client)).collect(),
            '%' => parts = (0..2 * length()).map(|_| Reply::read(client)).collect(),
            _ => {}
        }
        Reply { kind, text, parts }
    }

    /// Returns the value of a key in this map, or list of keys and values.
    pub fn get(&self, key: &str) -> Option<&Reply> {
        let pairs = self.parts.chunks_exact(2);
        pairs
            .into_iter()
            .find_map(|pair| (pair[0].text == key).then_some(&pair[1]))
    }

    /// Returns it with its parts sorted and deduplicated, for replies that represent sets.
    pub fn into_set(mut self) -> Reply {
        self.parts.sort();
        self.parts.dedup();
        self
    }
}

//! Replies, read one by one: for what two servers say in another order, or of themselves.

use super::encoded;
use crate::support::Client;

/// A reply of either protocol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reply {
    /// The mark it begins with.
    pub kind: char,
    /// What stands in its line; of bytes, these.
    pub text: String,
    /// What it holds; of a map, each key before its value.
    pub parts: Vec<Reply>,
}

impl Reply {
    /// What a server replies to a command.
    pub fn to(client: &mut Client, words: &[&str]) -> Reply {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        client.send(encoded(&words).as_bytes());
        Reply::read(client)
    }

    /// What a server replies to an inline command. The parts of `KEYS` have no order.
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

    /// What this map, or list of keys and values, has for a key.
    pub fn get(&self, key: &str) -> Option<&Reply> {
        let pairs = self.parts.chunks_exact(2);
        pairs
            .into_iter()
            .find_map(|pair| (pair[0].text == key).then_some(&pair[1]))
    }

    /// With the parts in order, each once: of what is a set, whatever it looks like.
    pub fn into_set(mut self) -> Reply {
        self.parts.sort();
        self.parts.dedup();
        self
    }
}

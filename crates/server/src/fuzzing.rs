//! Properties of both parsers on any bytes: for fuzzers (`fuzz/` at the repository's root), and for runs of seeded
//! inputs.
//!
//! The first byte of an input chooses the size of the pieces into which the others are cut, and whether the parser of
//! Redis's protocol has a client that has not logged in. The parser yields the same requests for every size. It does
//! not panic and makes progress. When it asks for more bytes, it asks for more than it has, and never for more than its
//! limits allow it to hold.

use crate::proto::memcached::parse as memcached_parse;
use crate::proto::memcached::request::Request;
use crate::proto::redis::parse as redis_parse;
use std::fmt::Write;

/// Limits so low that inputs reach them.
const MEMCACHED: memcached_parse::Limits = memcached_parse::Limits {
    value: 300,
    get_line: 4000,
};
const REDIS: redis_parse::Limits = redis_parse::Limits {
    bulk: 300,
    command: 1000,
};

/// Checks the parser of memcached's protocol on an input.
///
/// # Panics
///
/// The parser violates a property.
pub fn memcached(input: &[u8]) {
    both_ways(input, MEMCACHED.longest(), || {
        let mut parser = memcached_parse::Parser::new(MEMCACHED);
        move |held: &[u8], said: &mut String| match parser.next(held) {
            memcached_parse::Step::More { used, want } => (used, Some(want)),
            memcached_parse::Step::Request {
                used,
                request,
                noreply,
            } => {
                assert!(used > 0, "a request of no bytes");
                // Writing into memory does not fail.
                let _ = writeln!(said, "{request:?} {noreply}");
                let over = matches!(request, Request::LineTooLong | Request::Http);
                (used, (!over).then_some(0))
            }
        }
    });
}

/// Checks the parser of Redis's protocol on an input.
///
/// # Panics
///
/// The parser violates a property.
pub fn redis(input: &[u8]) {
    let unauthenticated = input.first().is_some_and(|first| first & 0x80 != 0);
    both_ways(input, REDIS.longest(), || {
        let mut parser = redis_parse::Parser::new(REDIS);
        move |held: &[u8], said: &mut String| match parser.next(held, unauthenticated) {
            redis_parse::Step::More(want) => (0, Some(want)),
            redis_parse::Step::Command(used) => {
                assert!(used > 0, "a command of no bytes");
                for arg in parser.args(held).from(0) {
                    let _ = write!(said, "{} ", arg.escape_ascii());
                }
                said.push('\n');
                (used, Some(0))
            }
            redis_parse::Step::Wrong(text) => {
                let _ = write!(said, "{}", text.escape_ascii());
                (0, None)
            }
        }
    });
}

/// Parses the input whole and in pieces, each with a new parser. A parser is given the bytes held, appends what it has
/// parsed, and returns how many bytes it has used and how many it needs next: 0 if there may be another request in the
/// rest, `None` if it has ended.
fn both_ways<P: FnMut(&[u8], &mut String) -> (usize, Option<usize>)>(
    input: &[u8],
    longest: usize,
    parser: impl Fn() -> P,
) {
    let Some((&first, bytes)) = input.split_first() else {
        return;
    };
    let piece = usize::from(first & 0x7f) + 1;
    let whole = read(bytes.chunks(bytes.len().max(1)), usize::MAX, parser());
    let pieces = read(bytes.chunks(piece), longest + piece, parser());
    assert_eq!(pieces, whole, "pieces of {piece} bytes are read otherwise");
}

fn read<'b>(
    pieces: impl Iterator<Item = &'b [u8]>,
    max: usize,
    mut parser: impl FnMut(&[u8], &mut String) -> (usize, Option<usize>),
) -> String {
    let (mut held, mut said, mut want) = (Vec::new(), String::new(), 1);
    for piece in pieces {
        held.extend_from_slice(piece);
        while held.len() >= want {
            let (used, wanted) = parser(&held, &mut said);
            held.drain(..used);
            match wanted {
                None => return said,
                Some(0) => want = 1,
                Some(wanted) => {
                    assert!(wanted > held.len(), "it asks for what it has");
                    want = wanted;
                }
            }
        }
        assert!(held.len() <= max, "{} bytes are held", held.len());
    }
    said
}

/// Inputs generated from a seed: words of both protocols and other bytes, in any order, some of them changed.
#[derive(Debug)]
pub struct Inputs(u64);

const WORDS: &[&str] = &[
    "get ",
    "gets ",
    "gat 0 ",
    "mn\r\n",
    "mg a ",
    "ms a ",
    "md a ",
    "ma a ",
    "me a",
    "set a 0 0 ",
    "add k 1 -1 ",
    "cas a 0 0 3 ",
    "append a 0 0 2\r\nab\r\n",
    "incr a 1",
    "decr a ",
    "touch a ",
    "flush_all ",
    "stats ",
    "cache_memlimit ",
    "quit",
    "noreply",
    " ",
    "\r\n",
    "\r",
    "\n",
    "0",
    "7",
    "299",
    "300",
    "301",
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "S3 ",
    "T0 ",
    "N30 ",
    "b ",
    "q ",
    "YWJj",
    "*1\r\n",
    "*3\r\n",
    "*0\r\n",
    "*-1\r\n",
    "*1048577\r\n",
    "$3\r\nget\r\n",
    "$3\r\nSET\r\n",
    "$0\r\n\r\n",
    "$1\r\na\r\n",
    "$300\r\n",
    "$-1\r\n",
    "$",
    "*",
    "\"",
    "'",
    "\\x41",
    "set a b\r\n",
    "POST / HTTP/1.1\r\n",
    "ping\r\n",
    "abc",
    "\0",
    "\u{ff}",
];

impl Inputs {
    /// Creates the inputs of a seed.
    pub fn new(seed: u64) -> Inputs {
        Inputs(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Fills `input` with the next input.
    pub fn fill(&mut self, input: &mut Vec<u8>) {
        input.clear();
        input.push(self.next() as u8);
        for _ in 0..self.below(16) {
            match self.below(24) {
                0 => (0..self.below(8)).for_each(|_| input.push(self.0 as u8)),
                1 => input.extend(std::iter::repeat_n(b'x', self.below(400))),
                2 => input.extend(std::iter::repeat_n(b'k', 248 + self.below(5))),
                3 if self.below(16) == 0 => input.extend(std::iter::repeat_n(b' ', 2048 + self.below(3000))),
                _ => input.extend_from_slice(WORDS[self.below(WORDS.len())].as_bytes()),
            }
        }
        for _ in 0..self.below(8).saturating_sub(4) {
            let at = self.below(input.len());
            match self.below(3) {
                0 => input[at] = self.next() as u8,
                1 => drop(input.remove(at)),
                _ => input.insert(at, self.next() as u8),
            }
            if input.is_empty() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample of a fuzzer's inputs, the same in each run.
    #[test]
    fn a_hundred_thousand_inputs_are_read_alike_however_they_are_cut() {
        let (mut inputs, mut input) = (Inputs::new(1), Vec::new());
        for _ in 0..50_000 {
            inputs.fill(&mut input);
            memcached(&input);
            redis(&input);
        }
    }

    /// Checks every input of a corpus; the output names the file that fails.
    fn corpus(target: &str, read: fn(&[u8])) {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");
        let inputs = std::fs::read_dir(format!("{corpus}/{target}")).expect("the corpus");
        let mut count = 0;
        for input in inputs {
            let path = input.expect("a file").path();
            println!("{}", path.display());
            read(&std::fs::read(path).expect("a file"));
            count += 1;
        }
        assert!(count > 0, "no inputs for {target}");
    }

    #[test]
    fn memcacheds_corpus_is_read_alike_however_it_is_cut() {
        corpus("memcached", memcached);
    }

    #[test]
    fn rediss_corpus_is_read_alike_however_it_is_cut() {
        corpus("redis", redis);
    }
}

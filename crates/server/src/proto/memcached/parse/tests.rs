//! The parser's properties.

use super::*;
use crate::items::store::classic::Verb;
use proptest::collection::vec;
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    value: 300,
    get_line: 4000,
};

/// Parses pieces as a connection does. Returns the requests, as text, and the maximum number of bytes held.
fn requests<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> (Vec<String>, usize) {
    let mut parser = Parser::new(LIMITS);
    let mut held = Vec::new();
    let (mut requests, mut max) = (Vec::new(), 0);
    let mut want = 1;
    for piece in pieces {
        for &byte in piece {
            held.push(byte);
            max = max.max(held.len());
        }
        while held.len() >= want {
            let used = match parser.next(&held) {
                Step::More { used, want: wanted } => {
                    assert!(wanted > held.len() - used, "it asks for more than it has");
                    want = wanted;
                    used
                }
                Step::Request {
                    used,
                    request,
                    noreply,
                } => {
                    assert!(used > 0);
                    requests.push(format!("{request:?} {noreply}"));
                    if request == Request::LineTooLong {
                        return (requests, max);
                    }
                    want = 1;
                    used
                }
            };
            held.drain(..used);
        }
    }
    (requests, max)
}

fn whole(bytes: &[u8]) -> Vec<String> {
    requests([bytes].into_iter()).0
}

/// Byte strings that look like the protocol, more or less.
fn protocol() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        8 => "(get|gets|gat|mn|mg|ms|md|ma|me|set|add|replace|append|prepend|cas|delete|incr|decr|touch|flush_all|stats|quit|verbosity|cache_memlimit)",
        8 => "[a-c]{1,3}",
        1 => "k{249,252}",
        8 => "[0-9]{1,3}",
        1 => "[0-9]{18,21}",
        2 => "-[0-9]{1,2}",
        4 => Just("noreply".to_owned()),
        4 => "[bcfhklqstvI]|[CDFJNORTM][0-9EAP]{0,2}",
        4 => Just("\r\n".to_owned()),
        1 => Just("\n".to_owned()),
        1 => "[ ]{0,2}[x]{200,900}",
    ];
    let store = (
        vec(any::<u8>(), 0..400),
        "(set|append) [a-c] 0 0|ms [a-c]",
        "( noreply| q| T1| b)?",
    )
        .prop_map(|(data, line, last)| {
            let mut bytes = format!("{line} {}{last}\r\n", data.len()).into_bytes();
            bytes.extend(data);
            bytes.extend(b"\r\n");
            bytes
        });
    let piece = prop_oneof![
        6 => word.prop_map(String::into_bytes),
        6 => Just(b" ".to_vec()),
        3 => Just(b"\r\n".to_vec()),
        2 => store,
        1 => vec(any::<u8>(), 0..20),
    ];
    vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// However the bytes are cut into pieces, the requests are the same.
    #[test]
    fn pieces_do_not_matter(bytes in protocol(), cuts in vec(1usize..200, 1..40)) {
        let mut rest = bytes.as_slice();
        let pieces = cuts.iter().cycle().map_while(|&cut| {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            rest = behind;
            Some(piece).filter(|piece| !piece.is_empty())
        });
        let (cut, _) = requests(pieces);
        prop_assert_eq!(&cut, &whole(&bytes));
        let (single, max) = requests(bytes.chunks(1));
        prop_assert_eq!(&single, &cut);
        prop_assert!(max <= LIMITS.longest(), "{} bytes held", max);
    }

    /// Any bytes at all are requests or wrong, never a panic, and are all used up or waited for.
    #[test]
    fn any_bytes_will_do(bytes: Vec<u8>) {
        whole(&bytes);
    }

    /// A storage command is read as the client wrote it, and the bytes behind it are the next request.
    #[test]
    fn storage_commands_are_read(
        key in "[!-~]{1,250}", flags: u32, lifetime in -10i64..1 << 40, unique: u64, data in vec(any::<u8>(), 0..300),
        noreply: bool,
    ) {
        let words = [("set", None), ("add", Some(Verb::Add)), ("replace", Some(Verb::Replace)),
            ("append", Some(Verb::Append)), ("prepend", Some(Verb::Prepend)), ("cas", Some(Verb::Cas(unique)))];
        for (word, verb) in words {
            let unique = if word == "cas" { format!(" {unique}") } else { String::new() };
            let silent = if noreply { " noreply" } else { "" };
            let mut bytes = format!("{word} {key} {flags} {lifetime} {}{unique}{silent}\r\n", data.len()).into_bytes();
            bytes.extend_from_slice(&data);
            bytes.extend_from_slice(b"\r\n");
            let used = bytes.len();
            bytes.extend_from_slice(b"version\r\n");
            let mut parser = Parser::new(LIMITS);
            let key = key.as_bytes();
            let body = match verb {
                None => Body::Set { key, flags, lifetime },
                Some(verb) => Body::Classic { verb, key, flags, lifetime },
            };
            let request = Request::Store { body, data: &data };
            prop_assert_eq!(parser.next(&bytes), Step::Request { used, request, noreply });
            let next = parser.next(&bytes[used..]);
            prop_assert_eq!(next, Step::Request { used: 9, request: Request::Version, noreply: false });
        }
    }

    /// The keys of a `get` are its words.
    #[test]
    fn keys_are_the_words(keys in vec("[!-~]{1,250}", 1..10), blanks in 1usize..4) {
        let line = format!("gets {}\r\n", keys.join(&" ".repeat(blanks)));
        let Step::Request { used, request: Request::Get { keys: read, unique: true }, noreply: false } =
            Parser::new(LIMITS).next(line.as_bytes())
        else {
            return Err(TestCaseError::fail("not a gets"));
        };
        prop_assert_eq!(used, line.len());
        prop_assert!(read.eq(keys.iter().map(String::as_bytes)));
    }
}

/// The body of a value that is too large is skipped as it comes, and never held.
#[test]
fn large_bodies_are_not_held() {
    let mut bytes = b"set a 0 0 100000\r\n".to_vec();
    bytes.resize(bytes.len() + 100_000, b'\n');
    bytes.extend_from_slice(b"\r\nversion\r\n");
    let (read, max) = requests(bytes.chunks(100));
    assert_eq!(
        read,
        [
            "TooLarge(Set { key: [97], flags: 0, lifetime: 0 }) false",
            "Version false"
        ]
    );
    assert!(max <= 200, "{max} bytes held");
}

/// A line is too long at the same byte, whether its end has arrived or not.
#[test]
fn lines_have_a_limit() {
    let long = |command: &str, length: usize| {
        let line = format!("{command}{}\r\nversion\r\n", "x ".repeat(length)).into_bytes();
        let read = whole(&line);
        assert_eq!(requests(line.chunks(1)).0, read);
        read.last().is_some_and(|last| last.starts_with("LineTooLong"))
    };
    assert!(!long("delete ", 1000));
    assert!(long("delete ", 1030));
    assert!(!long("get ", 1990));
    assert!(long("get ", 2000));
}

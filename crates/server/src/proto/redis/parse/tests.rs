//! The parser's properties.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    bulk: 300,
    command: 1000,
};

/// Parses pieces as a connection does. Returns the commands, as text, and the maximum number of bytes held.
fn commands<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> (Vec<String>, usize) {
    let mut parser = Parser::new(LIMITS);
    let mut held = Vec::new();
    let (mut commands, mut max, mut want) = (Vec::new(), 0, 1);
    for piece in pieces {
        held.extend_from_slice(piece);
        max = max.max(held.len());
        while held.len() >= want {
            match parser.next(&held, false) {
                Step::More(wanted) => {
                    assert!(wanted > held.len(), "it asks for more than it has");
                    want = wanted;
                }
                Step::Command(used) => {
                    assert!(used > 0);
                    let args: Vec<_> = parser.args(&held).from(0).map(<[u8]>::to_vec).collect();
                    commands.push(format!("{args:?}"));
                    held.drain(..used);
                    want = 1;
                }
                Step::Wrong(text) => {
                    commands.push(String::from_utf8_lossy(&text).into_owned());
                    return (commands, max);
                }
            }
        }
    }
    (commands, max)
}

/// Byte strings that look like the protocol, more or less.
fn protocol() -> impl Strategy<Value = Vec<u8>> {
    let whole = vec(vec(any::<u8>(), 0..40), 1..6).prop_map(|args| encoded(&args));
    let piece = prop_oneof![
        8 => whole,
        1 => "(\\*|\\$)-?[0-9]{1,9}\r\n".prop_map(String::into_bytes),
        2 => "(get|set) [a-c'\"\\\\x0-9 ]{0,20}\r?\n".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..20),
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn encoded(args: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend(format!("${}\r\n", arg.len()).bytes());
        bytes.extend(arg);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// Parses bytes that arrive `piece` at a time with a new parser, which is called whenever as many have arrived as it
/// wants. Returns its last step.
fn read(limits: Limits, bytes: &str, piece: usize) -> Step {
    let mut parser = Parser::new(limits);
    let mut step = Step::More(1);
    let ends = (0..bytes.len())
        .step_by(piece)
        .map(|begin| (begin + piece).min(bytes.len()));
    for end in ends {
        if let Step::More(want) = step
            && want <= end
        {
            step = parser.next(&bytes.as_bytes()[..end], false);
        }
    }
    step
}

proptest! {
    /// A length is read as a strict number, whether it arrives at once or byte by byte.
    #[test]
    fn lengths_are_strict_numbers(word in "[0-9]{0,6}|[-+0-9 x]{0,6}", end in "\r[\n\rx]") {
        let wide = Limits { bulk: usize::MAX / 4, command: usize::MAX / 2 };
        let bulk = format!("*1\r\n${word}{end}");
        let step = match number::strict(word.as_bytes()).and_then(|length| usize::try_from(length).ok()) {
            Some(length) => Step::More(bulk.len() + length + 2),
            None => wrong("invalid bulk length"),
        };
        prop_assert_eq!(&read(wide, &bulk, bulk.len()), &step);
        prop_assert_eq!(&read(wide, &bulk, 1), &step);
        let count = format!("*{word}{end}");
        let step = match number::strict(word.as_bytes()) {
            Some(..=0) => Step::Command(count.len()),
            Some(_) => Step::More(count.len() + 1),
            None => wrong("invalid multibulk length"),
        };
        prop_assert_eq!(&read(LIMITS, &count, count.len()), &step);
        prop_assert_eq!(&read(LIMITS, &count, 1), &step);
    }

    /// However the bytes are cut into pieces, the commands are the same.
    #[test]
    fn pieces_do_not_matter(bytes in protocol(), cut in 1usize..60) {
        let (whole, _) = commands([bytes.as_slice()].into_iter());
        let (cut, _) = commands(bytes.chunks(cut));
        prop_assert_eq!(&cut, &whole);
        let (single, max) = commands(bytes.chunks(1));
        prop_assert_eq!(&single, &whole);
        prop_assert!(max <= LIMITS.longest(), "{} bytes held", max);
    }

    /// Any bytes at all are commands or wrong, never a panic.
    #[test]
    fn any_bytes_will_do(bytes: Vec<u8>) {
        commands([bytes.as_slice()].into_iter());
    }

    /// What a client writes is read.
    #[test]
    fn commands_are_read_as_written(args in vec(vec(any::<u8>(), 0..100), 1..8)) {
        let (read, _) = commands([encoded(&args).as_slice()].into_iter());
        prop_assert_eq!(read, [format!("{args:?}")]);
    }
}

/// Inline commands have quotes as Redis reads them.
#[test]
fn inline_commands_have_quotes() {
    let read = |line: &str| commands([line.as_bytes()].into_iter()).0;
    assert_eq!(
        read("set k \"a b\\x41\\n\"\r\n"),
        [format!("{:?}", [&b"set"[..], b"k", b"a bA\n"])]
    );
    assert_eq!(
        read("set k 'it\\'s'\n"),
        [format!("{:?}", [&b"set"[..], b"k", b"it's"])]
    );
    assert_eq!(
        read("\x0bset \x0ck\x0bl\x0c\t'v'\x0b\r\n"),
        [format!("{:?}", [&b"set"[..], b"k\x0bl\x0c", b"v"])]
    );
    assert_eq!(read("\r\n\r\n"), ["[]", "[]"]);
    for line in ["set k \"a\r\n", "set k \"a\"b\r\n", "set k 'a\r\n"] {
        assert_eq!(read(line), ["ERR Protocol error: unbalanced quotes in request"]);
    }
}

/// Protocol errors have Redis's words.
#[test]
fn wrong_lengths_are_told() {
    let read = |text: &str| commands([text.as_bytes()].into_iter()).0.pop();
    for (text, told) in [
        ("*x\r\n", "invalid multibulk length"),
        ("*2147483648\r\n", "invalid multibulk length"),
        ("*1\r\n:1\r\n", "expected '$', got ':'"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$301\r\n", "invalid bulk length"),
    ] {
        assert_eq!(read(text), Some(format!("ERR Protocol error: {told}")), "{text}");
    }
    assert_eq!(read("*0\r\n").as_deref(), Some("[]"));
    assert_eq!(read("*-5\r\n").as_deref(), Some("[]"));
}

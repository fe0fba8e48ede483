//! Inline commands: words separated by blanks, with Redis's quotes. Vertical tabs and form feeds are blanks before a
//! word and behind a quote, and part of a word that has begun.

use std::ops::Range;

/// Splits a line into words: appends them to `words`, and their places there to `ranges`. Returns `None` if a quote is
/// not closed, or is followed by something other than a blank.
pub fn split(line: &[u8], words: &mut Vec<u8>, ranges: &mut Vec<Range<usize>>) -> Option<()> {
    let mut rest = line;
    loop {
        let begin = rest.iter().position(|byte| !is_blank(*byte));
        let Some(begin) = begin else { return Some(()) };
        rest = &rest[begin..];
        let word = words.len();
        loop {
            match *rest {
                [] => break,
                [b'"', ref behind @ ..] => {
                    rest = double(behind, words)?;
                    break;
                }
                [b'\'', ref behind @ ..] => {
                    rest = single(behind, words)?;
                    break;
                }
                [b' ' | b'\n' | b'\r' | b'\t', ..] => break,
                [byte, ref behind @ ..] => {
                    words.push(byte);
                    rest = behind;
                }
            }
        }
        ranges.push(word..words.len());
    }
}

/// Reads up to the closing double quote, and returns what is behind it.
fn double<'l>(mut rest: &'l [u8], words: &mut Vec<u8>) -> Option<&'l [u8]> {
    loop {
        let (byte, behind) = match *rest {
            [] => return None,
            [b'"', ref behind @ ..] => return ends(behind),
            [b'\\', b'x', high, low, ref behind @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (digit(high) << 4 | digit(low), behind)
            }
            [b'\\', byte, ref behind @ ..] => {
                let byte = match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => other,
                };
                (byte, behind)
            }
            [byte, ref behind @ ..] => (byte, behind),
        };
        words.push(byte);
        rest = behind;
    }
}

/// Reads up to the closing single quote, and returns what is behind it.
fn single<'l>(mut rest: &'l [u8], words: &mut Vec<u8>) -> Option<&'l [u8]> {
    loop {
        let (byte, behind) = match *rest {
            [] => return None,
            [b'\'', ref behind @ ..] => return ends(behind),
            [b'\\', b'\'', ref behind @ ..] => (b'\'', behind),
            [byte, ref behind @ ..] => (byte, behind),
        };
        words.push(byte);
        rest = behind;
    }
}

/// Returns what is behind a closing quote, which must end its word.
fn ends(behind: &[u8]) -> Option<&[u8]> {
    behind
        .first()
        .is_none_or(|byte| is_blank(*byte))
        .then_some(behind)
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 11
}

fn digit(hex: u8) -> u8 {
    match hex {
        b'0'..=b'9' => hex - b'0',
        _ => (hex | 32) - b'a' + 10,
    }
}

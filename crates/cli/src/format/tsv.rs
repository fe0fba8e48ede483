//! Tab-separated values.
//!
//! A line is a key, a tab and a value. In both, `\t`, `\n`, `\r` and `\\` stand for tab, newline, carriage return and
//! backslash, and `\xNN` for a byte; the output is always UTF-8.

use std::io::{self, Write};

/// Writes `bytes` escaped, so that they fit on one line, in one field.
pub fn escape(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    for chunk in bytes.utf8_chunks() {
        let mut plain = 0;
        let text = chunk.valid().as_bytes();
        for (i, &byte) in text.iter().enumerate() {
            if byte >= b' ' && byte != b'\\' && byte != 0x7f {
                continue;
            }
            out.write_all(&text[plain..i])?;
            plain = i + 1;
            match byte {
                b'\t' => out.write_all(b"\\t")?,
                b'\n' => out.write_all(b"\\n")?,
                b'\r' => out.write_all(b"\\r")?,
                b'\\' => out.write_all(b"\\\\")?,
                other => write!(out, "\\x{other:02x}")?,
            }
        }
        out.write_all(&text[plain..])?;
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}

/// Returns the bytes that an escaped text stands for.
pub fn unescape(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        bytes.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let (byte, len) = match rest {
            [b't', ..] => (b'\t', 1),
            [b'n', ..] => (b'\n', 1),
            [b'r', ..] => (b'\r', 1),
            [b'\\', ..] => (b'\\', 1),
            [b'x', high, low, ..] => (digit(*high)? << 4 | digit(*low)?, 3),
            [b'x', ..] => return Err("'\\x' without two hexadecimal digits".into()),
            [other, ..] => {
                let other = char::from(*other).escape_default();
                return Err(format!(
                    "'\\{other}' is not an escape: write a backslash as '\\\\'"
                ));
            }
            [] => return Err("a backslash at the end: write it as '\\\\'".into()),
        };
        bytes.push(byte);
        rest = &rest[len..];
    }
    bytes.extend_from_slice(rest);
    Ok(bytes)
}

fn digit(byte: u8) -> Result<u8, String> {
    let digit = char::from(byte).to_digit(16);
    digit
        .map(|digit| digit as u8)
        .ok_or_else(|| "'\\x' without two hexadecimal digits".into())
}

/// Splits a line into its two fields.
pub fn split(line: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let mut fields = line.split(|&byte| byte == b'\t');
    match (fields.next(), fields.next(), fields.count()) {
        (Some(key), Some(value), 0) => Ok((key, value)),
        (_, None, _) => Err("no tab between key and value".into()),
        (_, _, more) => Err(format!(
            "{} fields instead of two: write a tab in a key or value as '\\t'",
            more + 2
        )),
    }
}

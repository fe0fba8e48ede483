//! Entries as text: tab-separated values and JSON lines. Both preserve any bytes.

pub mod json;
pub mod tsv;

use clap::ValueEnum;
use std::io::{self, Write};
use std::path::Path;

pub use wollemi::Entry;

/// A text form of entries, one per line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// KEY TAB VALUE, with the escapes \t \n \r \\ and \xNN
    Tsv,
    /// {"key": …, "value": …}; key_base64 and value_base64 for bytes that are not UTF-8
    Jsonl,
}

impl Format {
    /// Returns the format that a file's name suggests.
    pub fn of(path: &Path) -> Format {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension {
            Some("jsonl" | "ndjson" | "json") => Format::Jsonl,
            _ => Format::Tsv,
        }
    }

    /// Writes one entry and a newline.
    pub fn write(self, out: &mut impl Write, key: &[u8], value: &[u8]) -> io::Result<()> {
        match self {
            Format::Tsv => {
                tsv::escape(out, key)?;
                out.write_all(b"\t")?;
                tsv::escape(out, value)?;
            }
            Format::Jsonl => json::write(out, key, value)?,
        }
        out.write_all(b"\n")
    }

    /// Parses one entry from a line without its newline. The error says what is wrong with the line.
    pub fn read(self, line: &[u8]) -> Result<Entry, String> {
        match self {
            Format::Tsv => {
                let (key, value) = tsv::split(line)?;
                Ok((tsv::unescape(key)?, tsv::unescape(value)?))
            }
            Format::Jsonl => json::read(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hostile() -> Vec<Vec<u8>> {
        let mut all = vec![
            Vec::new(),
            b"\\".to_vec(),
            b"\\t".to_vec(),
            b"\\x41".to_vec(),
            b"a\tb\nc\rd\\e".to_vec(),
            "snow \u{2603} \u{feff}\u{2028}".into(),
            b"\xff\xfe\xc3".to_vec(),
            b"\xe2\x98".to_vec(),
            b"\"quotes\" and {braces}".to_vec(),
            (0..=255).collect(),
            b"line\r".to_vec(),
            vec![0; 70],
        ];
        all.extend((0..=255).map(|byte| vec![byte]));
        all
    }

    /// Both formats write one line of UTF-8, and read it back as the same bytes.
    #[test]
    fn any_bytes_survive_a_round_trip() {
        for format in [Format::Tsv, Format::Jsonl] {
            for key in hostile() {
                for value in [b"v".to_vec(), key.iter().rev().copied().collect()] {
                    let mut text = Vec::new();
                    format.write(&mut text, &key, &value).expect("writing to memory");
                    let line = text.strip_suffix(b"\n").expect("ends with a newline");
                    assert!(!line.contains(&b'\n') && std::str::from_utf8(line).is_ok());
                    assert_eq!(format.read(line), Ok((key.clone(), value)));
                }
            }
        }
    }

    /// A line that is not an entry is refused with a reason, never guessed.
    #[test]
    fn malformed_lines_are_refused() {
        for line in [
            "",
            "no tab",
            "a\tb\tc",
            "a\\\tb",
            "a\\q\tb",
            "a\\x4\tb",
            "a\\xg0\tb",
            "a\tb\\",
        ] {
            Format::Tsv.read(line.as_bytes()).expect_err(line);
        }
        for line in [
            "",
            "{}",
            "[1]",
            r#"{"key":"k"}"#,
            r#"{"value":"v"}"#,
            r#"{"key":"k","value":1}"#,
            r#"{"key":"k","key_base64":"aw==","value":"v"}"#,
            r#"{"key_base64":"!","value":"v"}"#,
            r#"{"key":"k","value":"v","more":1}"#,
            r#"{"key":"k","value":"v"} trailing"#,
        ] {
            Format::Jsonl.read(line.as_bytes()).expect_err(line);
        }
    }
}

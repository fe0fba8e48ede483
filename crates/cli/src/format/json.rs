//! JSON lines: one object per entry, base64 for bytes that are not UTF-8.

use super::Entry;
use base64::prelude::{BASE64_STANDARD, Engine};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::{self, Write};

/// An entry with each field as text, or as base64.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Record<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    key: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    key_base64: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    value: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    value_base64: Option<Cow<'a, str>>,
}

type Text<'a> = Option<Cow<'a, str>>;

fn encode(bytes: &[u8]) -> (Text<'_>, Text<'_>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.into()), None),
        Err(_) => (None, Some(BASE64_STANDARD.encode(bytes).into())),
    }
}

fn decode(name: &str, text: Text<'_>, base64: Text<'_>) -> Result<Vec<u8>, String> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into_owned().into_bytes()),
        (None, Some(base64)) => BASE64_STANDARD
            .decode(&*base64)
            .map_err(|error| format!("{name}_base64: {error}")),
        (None, None) => Err(format!("neither '{name}' nor '{name}_base64'")),
        (Some(_), Some(_)) => Err(format!("both '{name}' and '{name}_base64'")),
    }
}

/// Writes an entry, without a newline.
pub fn write(out: &mut impl Write, key: &[u8], value: &[u8]) -> io::Result<()> {
    let (key, key_base64) = encode(key);
    let (value, value_base64) = encode(value);
    Ok(serde_json::to_writer(
        out,
        &Record {
            key,
            key_base64,
            value,
            value_base64,
        },
    )?)
}

/// Writes a key, without a newline.
pub fn write_key(out: &mut impl Write, key: &[u8]) -> io::Result<()> {
    let (key, key_base64) = encode(key);
    Ok(serde_json::to_writer(
        out,
        &Record {
            key,
            key_base64,
            ..Record::default()
        },
    )?)
}

/// Parses an entry.
pub fn read(line: &[u8]) -> Result<Entry, String> {
    let record: Record<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let key = decode("key", record.key, record.key_base64)?;
    let value = decode("value", record.value, record.value_base64)?;
    Ok((key, value))
}

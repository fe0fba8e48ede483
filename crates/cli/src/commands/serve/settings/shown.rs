//! Prints the settings as a settings file, each with its source.

use super::{Setting, Values};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Defaults that the parser does not know.
const IMPLIED: &[(&str, &str)] = &[
    ("pool", "./wollemi.pool"),
    ("map", "memcached"),
    ("level", "process"),
    ("max-size", "1T"),
];

/// Prints all settings, as TOML with comments, or as one JSON object.
pub fn show(out: &mut impl Write, all: &[Setting], json: bool) -> io::Result<()> {
    if json {
        let told = |setting: &Setting| json!({"value": value(setting), "source": setting.source.to_string()});
        let object = all.iter().map(|setting| (setting.name.clone(), told(setting)));
        let object: serde_json::Map<_, _> = object.collect();
        serde_json::to_writer(&mut *out, &object).map_err(io::Error::from)?;
        return writeln!(out);
    }
    for setting in all {
        let Setting { name, source, .. } = setting;
        match value(setting) {
            Value::Null => writeln!(out, "# {name} is not set")?,
            // JSON's form of these values is also valid TOML.
            value => writeln!(out, "{name} = {value}  # {source}")?,
        }
    }
    Ok(())
}

/// Returns a setting's value as JSON: null, one value, or an array.
fn value(setting: &Setting) -> Value {
    let texts = match &setting.values {
        Values::Switch(on) => return json!(on),
        Values::Texts(texts) => texts,
    };
    let mut values = texts.iter().map(|text| one(&text.to_string_lossy()));
    match (texts.len(), implied(&setting.name)) {
        (0, Some(value)) => one(value),
        (0, None) => Value::Null,
        (1, _) => values.next().unwrap_or_default(),
        _ => values.collect(),
    }
}

fn implied(name: &str) -> Option<&'static str> {
    let implied = IMPLIED.iter().find(|(implied, _)| *implied == name);
    implied.map(|(_, value)| *value)
}

/// Returns a number if the text is one, else the text.
fn one(text: &str) -> Value {
    let number = text.parse::<i64>().ok();
    match number.filter(|number| number.to_string() == text) {
        Some(number) => json!(number),
        None => json!(text),
    }
}

//! The settings as a file of settings, each with where it comes from.

use super::{Setting, Values};
use serde_json::{Value, json};
use std::io::{self, Write};

/// The defaults that the parser does not know.
const IMPLIED: &[(&str, &str)] = &[
    ("pool", "./wollemi.pool"),
    ("map", "memcached"),
    ("level", "process"),
    ("max-size", "1T"),
];

/// Shows all settings, as TOML with comments, or as one object of JSON.
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
            // What JSON writes for these is TOML, too.
            value => writeln!(out, "{name} = {value}  # {source}")?,
        }
    }
    Ok(())
}

/// A setting's value as JSON: nothing, one, or several.
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

/// A number where it is one, else text.
fn one(text: &str) -> Value {
    let number = text.parse::<i64>().ok();
    match number.filter(|number| number.to_string() == text) {
        Some(number) => json!(number),
        None => json!(text),
    }
}

//! The settings file: TOML, with the names of the options as keys.

use super::{Given, Source, Values, is_list, is_switch, name};
use crate::exit::Failure;
use clap::Arg;
use std::ffi::OsString;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Reads the values of these options from a file.
///
/// # Errors
///
/// A file that cannot be read or is not TOML, unknown keys, and invalid values, each with the file and the line.
pub fn read(path: &Path, options: &[&Arg]) -> Result<Vec<Given>, Failure> {
    let unreadable = |error: std::io::Error| Failure::input(path.display().to_string(), error);
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let line = |at: usize| 1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count();
    let wrong = |at: usize, why: String| Failure::Usage(format!("{}:{}: {why}", path.display(), line(at)));
    let table = DeTable::parse(&text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        wrong(at, error.message().to_owned())
    })?;
    let mut said: Vec<Given> = Vec::new();
    for (key, value) in table.get_ref() {
        let at = key.span().start;
        // Hyphens and underscores are both common in TOML files.
        let spelled = key.get_ref().replace('_', "-");
        let option = options.iter().find(|option| name(option) == spelled);
        let option = option.ok_or_else(|| wrong(at, format!("unknown key '{}'", key.get_ref())))?;
        if said.iter().any(|said| said.name == spelled) {
            return Err(wrong(at, format!("'{spelled}' is given twice")));
        }
        let values = values(option, value.get_ref());
        said.push(Given {
            values: values.map_err(|why| wrong(at, format!("'{}': {why}", key.get_ref())))?,
            name: spelled,
            source: Source::Line(path.to_owned(), line(at)),
        });
    }
    Ok(said)
}

fn values(option: &Arg, value: &DeValue<'_>) -> Result<Values, &'static str> {
    match value {
        DeValue::Boolean(on) if is_switch(option) => Ok(Values::Switch(*on)),
        _ if is_switch(option) => Err("expected true or false"),
        DeValue::Array(array) if is_list(option) && array.is_empty() => Err("expected at least one value"),
        DeValue::Array(array) if is_list(option) => {
            let texts = array.iter().map(|value| text(value.get_ref()));
            Ok(Values::Texts(texts.collect::<Result<_, _>>()?))
        }
        value => Ok(Values::Texts(vec![text(value)?])),
    }
}

fn text(value: &DeValue<'_>) -> Result<OsString, &'static str> {
    match value {
        DeValue::String(text) => Ok(text.clone().into_owned().into()),
        DeValue::Integer(number) => Ok(number.to_string().into()),
        _ => Err("expected a string or an integer"),
    }
}

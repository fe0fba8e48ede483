//! The output of commands: records, each as a line of JSON for programs, or in tables with the same fields for people.
//!
//! A table shows the records of one kind (by the field `record`, if any). It has one column per field, or one row per
//! field if columns would be too wide and rows are narrower. Fields that are equal in all records follow below the
//! table.

use crate::Error;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::fmt::Write;

/// The maximum width of a table, in characters.
const MAX_WIDTH: usize = 120;

/// Prints the records to standard output.
pub fn print(json: bool, records: &[impl Serialize]) -> Result<(), Error> {
    let lines: Result<Vec<String>, _> = records.iter().map(serde_json::to_string).collect();
    let lines = lines?;
    match json {
        true => lines.iter().try_for_each(|line| crate::print(line)),
        false => crate::print(&tables(&lines)?),
    }
}

/// The fields of a record in their order, each as text.
struct Record(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Record, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Record;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    flatten(&name, &value, &mut fields);
                }
                Ok(Record(fields))
            }
        }
        from.deserialize_map(Fields)
    }
}

impl Record {
    fn get(&self, name: &str) -> &str {
        let field = self.0.iter().find(|(of, _)| of == name);
        field.map_or("", |(_, text)| text)
    }
}

/// Appends a value as text, or each of its fields under its own name. Omits `null`, which stands for values not
/// measured.
fn flatten(name: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    let field = |part: &str| value[part].as_f64();
    let text = match value {
        Value::Null => return,
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => short(number.as_f64().unwrap_or(f64::NAN)),
        Value::Array(all) => list(all),
        Value::Object(parts) => match (field("median"), field("min"), field("max")) {
            (Some(median), Some(min), Some(max)) if min < max => {
                format!("{} ({}-{})", short(median), short(min), short(max))
            }
            (Some(median), ..) => short(median),
            _ if parts.contains_key("max_us") => list(value["max_us"].as_array().map_or(&[], Vec::as_slice)),
            _ if parts.contains_key("drifted") && parts.contains_key("before") => pace(value),
            _ => {
                parts
                    .iter()
                    .for_each(|(part, value)| flatten(&format!("{name}.{part}"), value, fields));
                return;
            }
        },
        other => other.to_string(),
    };
    fields.push((name.to_owned(), text));
}

/// Formats a calibration: cache-miss times before and after.
fn pace(value: &Value) -> String {
    let ns = |when: &str, what: &str| short(value[when][what].as_f64().unwrap_or(f64::NAN));
    let [dependent, parallel] = ["dependent_ns", "parallel_ns"].map(|what| {
        let (before, after) = (ns("before", what), ns("after", what));
        format!("{before} ns (after: {after})")
    });
    let drifted = if value["drifted"] == true { "; DRIFTED" } else { "" };
    format!("a miss {dependent}, overlapped {parallel}{drifted}")
}

/// Formats a list: calibrations one by one, of numbers only the greatest.
fn list(all: &[Value]) -> String {
    let numbers = all.iter().filter_map(Value::as_f64);
    match all.iter().all(Value::is_object) {
        true => all.iter().map(pace).collect::<Vec<_>>().join("; "),
        false => format!("at most {}", short(numbers.fold(0.0, f64::max))),
    }
}

/// Formats a number with about three significant digits.
fn short(number: f64) -> String {
    match number.abs() {
        0.0 => "0".into(),
        size if size >= 1000.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        size if size >= 0.1 => format!("{number:.3}"),
        _ => format!("{number:.6}"),
    }
}

/// Formats a table for each kind, in the order of their first records.
fn tables(lines: &[String]) -> Result<String, Error> {
    let records: Result<Vec<Record>, _> = lines.iter().map(|line| serde_json::from_str(line)).collect();
    let records = records?;
    let mut kinds: Vec<&str> = Vec::new();
    for record in &records {
        if !kinds.contains(&record.get("record")) {
            kinds.push(record.get("record"));
        }
    }
    let of = |kind: &&str| {
        let records = records.iter().filter(|record| record.get("record") == *kind);
        table(kind, &records.collect::<Vec<_>>())
    };
    Ok(kinds.iter().map(of).collect::<Vec<_>>().join("\n"))
}

fn table(kind: &str, records: &[&Record]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in records.iter().flat_map(|record| &record.0) {
        if name != "record" && !names.contains(&&**name) {
            names.push(name);
        }
    }
    let same = |name: &&str| {
        records
            .iter()
            .all(|record| record.get(name) == records[0].get(name))
    };
    let (same, differ): (Vec<&str>, Vec<&str>) = names.into_iter().partition(same);
    let row =
        |record: &&Record| -> Vec<String> { differ.iter().map(|name| record.get(name).to_owned()).collect() };
    let header = differ.iter().map(|name| (*name).to_owned()).collect();
    let mut rows: Vec<Vec<String>> = std::iter::once(header).chain(records.iter().map(row)).collect();
    let width = |rows: &[Vec<String>]| columns(rows).iter().map(|width| width + 2).sum::<usize>();
    if width(&rows) > MAX_WIDTH {
        let turned: Vec<Vec<String>> = (0..differ.len())
            .map(|i| rows.iter().map(|row| row[i].clone()).collect())
            .collect();
        if width(&turned) < width(&rows) {
            rows = turned;
        }
    }
    let mut text = match kind {
        "" => String::new(),
        kind => format!("{kind}\n"),
    };
    let widths = columns(&rows);
    for row in rows.iter().filter(|row| !row.is_empty()) {
        // The first column is aligned left, the others right.
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(i, (cell, &width))| match i {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    for name in same {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name}: {}", records[0].get(name));
    }
    text
}

/// Returns the width of each column.
fn columns(rows: &[Vec<String>]) -> Vec<usize> {
    let count = rows.first().map_or(0, Vec::len);
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    (0..count).map(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(records: &[Value]) -> String {
        tables(&records.iter().map(Value::to_string).collect::<Vec<_>>()).expect("tables")
    }

    /// Fields that differ are columns, as wide as their widest cell; the others follow below; values not
    /// measured are omitted; each kind has a table.
    #[test]
    fn what_differs_is_a_column() {
        let record = |engine: &str, median: f64| {
            let mops = json!({ "median": median, "min": 1.0, "max": 3.0 });
            json!({ "engine": engine, "keys": 5, "mops": mops, "nothing": null, "record": "throughput" })
        };
        let conditions = json!({ "record": "conditions", "machine": { "cores": 2 } });
        let text = of(&[record("a", 1.25), record("longer", 20.0), conditions]);
        assert_eq!(
            text,
            "throughput\nengine                 mops\na       1.250 (1.000-3.000)\nlonger   20.0 (1.000-3.000)\nkeys: 5\n\n\
             conditions\nmachine.cores: 2\n"
        );
    }

    /// A table that would be too wide has a row per field.
    #[test]
    fn wide_tables_are_turned() {
        let record = |number: usize| {
            let fields = (0..40).map(|i| (format!("field{i}"), (i * number).into()));
            Value::Object(fields.collect())
        };
        let text = of(&[record(1), record(2)]);
        assert!(
            text.lines().all(|line| line.chars().count() <= MAX_WIDTH),
            "{text}"
        );
        assert!(
            text.contains("field39  39  78\n") && text.contains("field0: 0\n"),
            "{text}"
        );
    }

    /// Calibrations report the time of a cache miss and where the machine changed; timelines report the longest call.
    #[test]
    fn paces_and_timelines_are_short() {
        let misses = |ns: f64| json!({ "dependent_ns": ns, "parallel_ns": 1.5 });
        let pace = |after| json!({ "before": misses(10.0), "after": misses(after), "drifted": after > 11.0 });
        let text =
            of(&[json!({ "pace": [pace(10.0), pace(20.0)], "timeline": { "ops": [1], "max_us": [3, 7] } })]);
        assert_eq!(text.matches("DRIFTED").count(), 1, "{text}");
        assert!(
            text.contains("a miss 10.0 ns (after: 20.0)") && text.contains("timeline: at most 7.000"),
            "{text}"
        );
    }
}

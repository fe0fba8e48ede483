//! The rooms' order, which the compiler does not keep: each uses those behind it alone.

use std::path::Path;

const ORDER: [&str; 10] = [
    "serve", "fuzzing", "proto", "ops", "net", "items", "freed", "counters", "clock", "error",
];

/// The sources of a room, without its tests.
fn sources(path: &Path, found: &mut Vec<(String, String)>) {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).expect("a folder");
        entries.for_each(|entry| sources(&entry.expect("an entry").path(), found));
    } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
        let text = std::fs::read_to_string(path).expect("a source");
        let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        found.push((path.display().to_string(), own.to_owned()));
    }
}

/// No source names a room that comes before its own.
#[test]
fn rooms_use_those_behind_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (place, room) in ORDER.iter().enumerate() {
        let mut found = Vec::new();
        for path in [src.join(room), src.join(format!("{room}.rs"))] {
            if path.exists() {
                sources(&path, &mut found);
            }
        }
        assert!(!found.is_empty(), "{room} has no source");
        for (path, text) in found {
            for before in &ORDER[..place] {
                let name = format!("crate::{before}");
                let used = text.match_indices(&name).any(|(at, _)| {
                    let next = text[at + name.len()..].chars().next();
                    !next.is_some_and(|next| next.is_alphanumeric() || next == '_')
                });
                assert!(!used, "{path} uses {before}");
            }
        }
    }
}

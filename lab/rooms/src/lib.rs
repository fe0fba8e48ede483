//! Checks that a crate is built in layers, which the compiler does not enforce. A layer, here a *room*, is a top-level
//! module: each uses only modules later in a list ([`assert_order`]). Also checks that modules beside each other form
//! no cycle of uses ([`assert_no_cycle`], [`cycles_of`]).
//!
//! A source file uses the modules that its `crate::` paths name; a name that the crate's root re-exports from a room
//! (`pub use room::Name`) counts as the room's. Tests, and comments on lines of their own, may name anything. Calls of
//! methods are not seen: a method belongs to the room of its type, or to one before it that adds methods to the type.

#![forbid(unsafe_code)]

mod cycles;
mod paths;
mod siblings;

pub use cycles::assert_no_cycle;
pub use siblings::{Cycle, cycles_of};

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Panics unless the crate in this folder keeps the order, which must list all of its top-level modules but those of
/// tests.
pub fn assert_order(crate_root: &str, order: &[&str]) {
    let src = Path::new(crate_root).join("src");
    let root = without_tests(&fs::read_to_string(src.join("lib.rs")).expect("the root of the crate"));
    for module in top_modules(&root) {
        assert!(order.contains(&module), "the order lacks {module}");
    }
    let reexported = reexported(&root);
    let place = |name: &str| order.iter().position(|room| *room == name);
    for (at, room) in order.iter().enumerate() {
        let mut sources = Vec::new();
        for path in [src.join(room), src.join(format!("{room}.rs"))] {
            collect(&path, &mut sources);
        }
        assert!(!sources.is_empty(), "{room} has no source");
        for (path, text) in sources {
            for name in used(&text) {
                let used = reexported.get(&*name).unwrap_or(&name);
                let behind = place(used).is_none_or(|used| used >= at);
                assert!(
                    behind,
                    "{path} uses `{name}` of {used}, which comes before {room} in the order"
                );
            }
        }
    }
}

/// Collects the source files at a path, without comments and tests.
fn collect(path: &Path, found: &mut Vec<(String, String)>) {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a folder");
        entries.for_each(|entry| collect(&entry.expect("an entry").path(), found));
    } else if path.extension().is_some_and(|extension| extension == "rs")
        && path.exists()
        && !path.ends_with("tests.rs")
    {
        let text = fs::read_to_string(path).expect("a source");
        found.push((path.display().to_string(), without_tests(&text)));
    }
}

/// Returns the text of a source file without its lines of comments, the tests at its end and other items of tests.
fn without_tests(text: &str) -> String {
    let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut lines = own.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut found = String::new();
    while let Some(line) = lines.next() {
        let attribute = line.trim_start();
        if !["#[cfg(test", "#[cfg(all(test", "#[cfg(doctest", "#[cfg(fuzzing"]
            .iter()
            .any(|tests| attribute.starts_with(tests))
        {
            found.extend([line, "\n"]);
            continue;
        }
        // In `rustfmt`'s layout the item ends with the first line that has the attribute's indentation and ends with
        // one of these characters.
        let indent = line.len() - attribute.len();
        lines.find(|line| line.len() - line.trim_start().len() == indent && line.ends_with([';', '}', ',']));
    }
    found
}

/// Returns the top-level modules, except those of tests.
fn top_modules(root: &str) -> Vec<&str> {
    let (mut found, mut before) = (Vec::new(), "");
    for line in root.lines() {
        let declared = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ");
        if let Some(name) = declared.and_then(|rest| rest.strip_suffix(';'))
            && !["#[cfg(test)]", "#[cfg(doctest)]"].contains(&before)
        {
            found.push(name);
        }
        before = line;
    }
    found
}

/// Returns the names that the root re-exports, and their modules.
fn reexported(root: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for (_, rest) in root
        .match_indices("pub use ")
        .map(|(at, text)| (at, &root[at + text.len()..]))
    {
        let statement = rest.split(';').next().unwrap_or_default();
        let module = word(statement);
        let (_, names) = statement.rsplit_once("::").unwrap_or_default();
        for name in names.trim_matches(['{', '}']).split(',').map(str::trim) {
            let name = name.rsplit_once(" as ").map_or(name, |(_, name)| name);
            found.insert(name.to_owned(), module.to_owned());
        }
    }
    found
}

/// Returns the names that follow `crate::` in a source file.
fn used(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, prefix) in text.match_indices("crate::") {
        let rest = &text[at + prefix.len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(first_names(group)),
            None => found.push(word(rest).to_owned()),
        }
    }
    found
}

/// Returns the first name of each path in a group whose opening brace is stripped.
fn first_names(group: &str) -> Vec<String> {
    let (mut found, mut depth, mut begins) = (Vec::new(), 0, true);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            _ if begins && !character.is_whitespace() => {
                found.push(word(&group[at..]).to_owned());
                begins = false;
            }
            _ => {}
        }
    }
    found
}

fn word(text: &str) -> &str {
    let end = text.find(|character: char| !character.is_alphanumeric() && character != '_');
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a crate in a temporary folder.
    pub fn a_crate(sources: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, text) in sources {
            let path = dir.path().join("src").join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        dir
    }

    fn check(above: &str, below: &str) -> bool {
        let root = "mod above;\nmod below;\n#[cfg(test)]\nmod double;\n\
                    pub use above::{\n    One, Two as Other,\n};\npub use below::inner::Thing;\n";
        let dir = a_crate(&[("lib.rs", root), ("above.rs", above), ("below/mod.rs", below)]);
        let path = dir.path().to_str().expect("text").to_owned();
        std::panic::catch_unwind(|| assert_order(&path, &["above", "below"])).is_ok()
    }

    /// Rooms may use themselves and later ones; comments and tests may use anything.
    #[test]
    fn the_order_is_kept() {
        assert!(check("use crate::{below::X, Thing};\nuse crate::above::Y;", ""));
        assert!(check("", "/// [`One`](crate::One)\nuse crate::Thing;"));
        assert!(check(
            "",
            "#[cfg(test)]\nmod tests {\n    use crate::above::Y;\n}\n"
        ));
    }

    /// Every way to name an earlier room is detected.
    #[test]
    fn what_breaks_the_order_is_seen() {
        for below in [
            "use crate::above::Y;",
            "use crate::{below::{X, Z}, above};",
            "use crate::One;",
            "fn f() { crate::Other::new() }",
            "use crate::{\n    Thing,\n    One,\n};",
        ] {
            assert!(!check("", below), "{below}");
        }
    }

    /// A module that the order omits fails the check.
    #[test]
    #[should_panic(expected = "the order lacks below")]
    fn all_modules_have_a_place() {
        let dir = a_crate(&[("lib.rs", "mod above;\npub mod below;\n"), ("above.rs", "")]);
        assert_order(dir.path().to_str().expect("text"), &["above"]);
    }
}

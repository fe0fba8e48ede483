//! The paths that a source file names.

use crate::word;

/// A module of a crate: the names on the path to it.
pub(crate) type Module = Vec<String>;

/// A path that a source file names.
pub(crate) struct Named {
    pub(crate) path: Vec<String>,
    /// The name under which a `use` imports it.
    pub(crate) imported_as: Option<String>,
}

/// Resolves a path that a module names, and returns it as a path from the crate's root.
pub(crate) fn absolute(user: &[String], path: &[String]) -> Module {
    let (mut base, mut path) = (user.to_vec(), path);
    while let Some((first, rest)) = path.split_first() {
        match first.as_str() {
            "crate" => base.clear(),
            "super" => drop(base.pop()),
            "self" => {}
            _ => break,
        }
        path = rest;
    }
    base.extend_from_slice(path);
    base
}

/// Returns the paths that a source file names.
pub(crate) fn paths(text: &str) -> Vec<Named> {
    let mut found = Vec::new();
    let mut rest = String::new();
    // Each statement but the last ends with a semicolon.
    for statement in text.split_inclusive(';') {
        match statement.rfind("use ").map(|at| statement.split_at(at)) {
            Some((before, tree)) if begins_statement(before) => {
                rest.push_str(before);
                expand(&[], tree["use ".len()..].trim_end_matches(';'), &mut found);
            }
            _ => rest.push_str(statement),
        }
    }
    for begin in ["super::", "crate::"] {
        for (at, _) in rest.match_indices(begin) {
            let end =
                rest[at..].find(|character: char| !character.is_alphanumeric() && !"_:".contains(character));
            let path = &rest[at..end.map_or(rest.len(), |end| at + end)];
            let names = path.split("::").filter(|name| !name.is_empty());
            found.push(Named {
                path: names.map(str::to_owned).collect(),
                imported_as: None,
            });
        }
    }
    found
}

/// Returns whether a `use` after this text begins a statement.
fn begins_statement(before: &str) -> bool {
    let line = before.lines().last().unwrap_or_default().trim();
    before.ends_with('\n') || line.is_empty() || line.starts_with("pub")
}

/// Appends the paths of a `use` tree.
fn expand(prefix: &[String], tree: &str, found: &mut Vec<Named>) {
    let tree = tree.trim();
    if let Some(group) = tree.strip_prefix('{') {
        let (mut depth, mut begin) = (0, 0);
        let group = group.strip_suffix('}').unwrap_or(group);
        for (at, character) in group.char_indices() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(prefix, &group[begin..at], found);
                    begin = at + 1;
                }
                _ => {}
            }
        }
        return expand(prefix, &group[begin..], found);
    }
    let name = word(tree);
    if name.is_empty() {
        return;
    }
    let path = match name {
        "self" if !prefix.is_empty() => prefix.to_vec(),
        _ => [prefix, &[name.to_owned()]].concat(),
    };
    let rest = tree[name.len()..].trim_start();
    let imported_as = match (rest.strip_prefix("::"), rest.strip_prefix("as ")) {
        (Some(rest), _) if !rest.trim_start().starts_with('*') => return expand(&path, rest, found),
        (Some(_), _) => None,
        (None, Some(alias)) => Some(word(alias.trim_start()).to_owned()),
        (None, None) => path.last().cloned(),
    };
    found.push(Named { path, imported_as });
}

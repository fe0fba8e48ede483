//! Cycles among the files of a folder: files that use each other, directly or through others.
//!
//! A file uses the modules that its `use` statements name, and those behind `super::` and `crate::` elsewhere. Lines of
//! comments and tests do not count, nor do declarations of child modules and calls of methods.

use crate::collect;
use crate::paths::{Module, absolute, paths};
use std::collections::BTreeMap;
use std::path::Path;

/// Panics if files of this folder below the crate's `src` use each other in a cycle.
pub fn assert_no_cycle(crate_root: &str, folder: &str) {
    let src = Path::new(crate_root).join("src");
    let mut sources = Vec::new();
    for path in [src.join(folder), src.join(format!("{folder}.rs"))] {
        collect(&path, &mut sources);
    }
    assert!(!sources.is_empty(), "{folder} has no source");
    let sources = sources.into_iter();
    let texts: BTreeMap<Module, String> = sources.map(|(path, text)| (module(&src, &path), text)).collect();
    let uses: BTreeMap<&Module, Vec<&Module>> = texts
        .iter()
        .map(|(user, text)| {
            let named = paths(text).into_iter();
            let used = named.filter_map(|named| resolve(&texts, user, &named.path));
            (user, used.filter(|used| *used != user).collect())
        })
        .collect();
    let (mut way, mut done) = (Vec::new(), Vec::new());
    for module in texts.keys() {
        visit(module, &uses, &mut way, &mut done);
    }
}

/// Visits everything that a module uses, and panics if that leads back to a module on the way.
fn visit<'m>(
    module: &'m Module,
    uses: &BTreeMap<&'m Module, Vec<&'m Module>>,
    way: &mut Vec<&'m Module>,
    done: &mut Vec<&'m Module>,
) {
    if let Some(at) = way.iter().position(|on_way| *on_way == module) {
        let cycle: Vec<_> = way[at..].iter().map(|module| module.join("::")).collect();
        panic!("modules use each other in a cycle: {}", cycle.join(" -> "));
    }
    if done.contains(&module) {
        return;
    }
    way.push(module);
    for used in &uses[module] {
        visit(used, uses, way, done);
    }
    way.pop();
    done.push(module);
}

/// Returns the module that a file holds.
fn module(src: &Path, path: &str) -> Module {
    let path = Path::new(path).strip_prefix(src).expect("a source of the crate");
    let names = path.with_extension("");
    let mut names: Module = names
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    if names.last().is_some_and(|name| name == "mod") {
        names.pop();
    }
    names
}

/// Returns the innermost known module on a path that a module names.
fn resolve<'m>(known: &'m BTreeMap<Module, String>, user: &Module, path: &[String]) -> Option<&'m Module> {
    let mut base = absolute(user, path);
    while !base.is_empty() {
        if let Some((module, _)) = known.get_key_value(&base) {
            return Some(module);
        }
        base.pop();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::a_crate;
    use std::panic::catch_unwind;

    /// Checks a folder of three files, of which `c` is in a folder of its own.
    fn check(a: &str, b: &str, c: &str) -> bool {
        let top = "mod a;\nmod b;\nmod d;\n";
        let dir = a_crate(&[
            ("room/mod.rs", top),
            ("room/a.rs", a),
            ("room/b.rs", b),
            ("room/d/c.rs", c),
        ]);
        let path = dir.path().to_str().expect("text").to_owned();
        catch_unwind(|| assert_no_cycle(&path, "room")).is_ok()
    }

    /// Files that use others in one direction pass, whatever comments and tests name.
    #[test]
    fn one_direction_passes() {
        assert!(check(
            "use super::b::X;\nuse super::d::c::Y;",
            "use super::d::c;",
            "use std::fmt;"
        ));
        assert!(check(
            "use super::b::X;",
            "/// [`A`](super::a::A)\n// super::a",
            ""
        ));
        assert!(check(
            "use super::b::X;",
            "#[cfg(test)]\nmod tests {\n    use super::super::a::A;\n}\n",
            ""
        ));
    }

    /// A cycle is detected however the files name each other, and through others.
    #[test]
    fn cycles_are_seen() {
        for b in [
            "use super::a::X;",
            "use super::{a, d};",
            "use super::{\n    d::{c},\n    a::{X, Y},\n};",
            "use crate::room::a::X;",
            "pub use super::a::X;",
            "fn f() {\n    super::a::x();\n}",
        ] {
            assert!(!check("use super::b::X;", b, ""), "{b}");
        }
        assert!(!check(
            "use super::b::X;",
            "use super::d::c::X;",
            "use super::super::a::X;"
        ));
    }
}

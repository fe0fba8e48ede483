//! Cycles among the modules of a crate: modules beside each other that use each other, directly or through others.
//!
//! A module uses what its paths name ([`cycles`](crate::cycles) says which count), and what is inside a module counts
//! as the module's. A name that a module imports by `use` counts as that of the module that has it. A parent's own
//! items count for no module, so all of its children may use them.

use crate::paths::{Module, Named, absolute, paths};
use crate::without_tests;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

/// Upper bound on the `use` statements through which one name passes.
const MAX_HOPS: usize = 8;

/// Modules beside each other of which each uses all others, directly or through them.
#[derive(Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Their parent module; empty for the crate's root.
    pub parent: String,
    /// Their names.
    pub modules: BTreeSet<String>,
    /// For each use among them: which module names which path.
    uses: Vec<String>,
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.modules.iter().map(String::as_str).collect();
        let parent = if self.parent.is_empty() {
            "crate"
        } else {
            &self.parent
        };
        write!(f, "in {parent}: {}", names.join(", "))?;
        self.uses.iter().try_for_each(|one| write!(f, "\n    {one}"))
    }
}

/// Returns the cycles among the modules of the crate in this folder.
pub fn cycles_of(crate_root: &Path) -> Vec<Cycle> {
    let modules = Modules::read(&crate_root.join("src"));
    let mut found = Vec::new();
    for (parent, uses) in modules.uses() {
        let mut left: BTreeSet<&str> = uses.keys().map(|(user, _)| user.as_str()).collect();
        while let Some(one) = left.pop_first() {
            let behind = reached(one, &uses);
            let of_cycle = |other: &&str| reached(other, &uses).contains(one);
            let cycle: BTreeSet<&str> = behind.iter().copied().filter(of_cycle).collect();
            if cycle.is_empty() {
                continue;
            }
            left.retain(|other| !cycle.contains(other));
            let inside = |(user, used): &(String, String)| cycle.contains(&**user) && cycle.contains(&**used);
            found.push(Cycle {
                parent: parent.join("::"),
                uses: uses
                    .iter()
                    .filter(|(pair, _)| inside(pair))
                    .map(|(_, how)| how.clone())
                    .collect(),
                modules: cycle.into_iter().map(str::to_owned).collect(),
            });
        }
    }
    found
}

/// The uses among modules with one parent: user and used module, and a description.
type Uses = BTreeMap<(String, String), String>;

/// Returns the modules that a module uses, directly or through others.
fn reached<'u>(from: &'u str, uses: &'u Uses) -> BTreeSet<&'u str> {
    let (mut found, mut news) = (BTreeSet::new(), vec![from]);
    while let Some(user) = news.pop() {
        let used = uses.keys().filter(|(of, _)| of == user);
        news.extend(used.map(|(_, used)| &**used).filter(|used| found.insert(*used)));
    }
    found
}

/// The modules of a crate, and the paths that each names.
struct Modules(BTreeMap<Module, Vec<Named>>);

impl Modules {
    fn read(src: &Path) -> Modules {
        let mut modules = Modules(BTreeMap::new());
        let root = ["lib.rs", "main.rs"].map(|name| src.join(name));
        let root = root.iter().find(|path| path.exists());
        modules.add(Vec::new(), root.expect("a crate's root"), src);
        modules
    }

    /// Adds the module in this file, and those that it declares, whose files are in `folder`.
    fn add(&mut self, module: Module, file: &Path, folder: &Path) {
        let text = without_tests(&fs::read_to_string(file).expect("a source"));
        for line in text.lines() {
            let declared = line
                .split_once("mod ")
                .filter(|(before, _)| before.is_empty() || before.starts_with("pub"));
            let Some(name) = declared.and_then(|(_, rest)| rest.strip_suffix(';')) else {
                continue;
            };
            let inside = folder.join(name);
            let files = [inside.with_extension("rs"), inside.join("mod.rs")];
            if let Some(file) = files.iter().find(|file| file.exists()) {
                self.add([&module[..], &[name.to_owned()]].concat(), file, &inside);
            }
        }
        self.0.insert(module, paths(&text));
    }

    /// Returns the uses among the children of each module.
    fn uses(&self) -> BTreeMap<Module, Uses> {
        let mut found: BTreeMap<Module, Uses> = BTreeMap::new();
        for (user, all) in &self.0 {
            for named in all {
                let Some(used) = self.resolve(absolute(user, &named.path)) else {
                    continue;
                };
                let shared = user.iter().zip(&used).take_while(|(a, b)| a == b).count();
                if let (Some(one), Some(other)) = (user.get(shared), used.get(shared)) {
                    let how = format!(
                        "{one} uses {other}: {} names {}",
                        user.join("::"),
                        named.path.join("::")
                    );
                    let uses = found.entry(user[..shared].to_vec()).or_default();
                    uses.entry((one.clone(), other.clone())).or_insert(how);
                }
            }
        }
        found
    }

    /// Returns the module that has the item at this path; `None` if the path leads through too many `use` statements.
    fn resolve(&self, mut path: Module) -> Option<Module> {
        for _ in 0..MAX_HOPS {
            let inner = (0..=path.len())
                .rev()
                .find(|&len| self.0.contains_key(&path[..len]))?;
            let (module, rest) = path.split_at(inner);
            let Some(name) = rest.first() else {
                return Some(module.to_vec());
            };
            let import = self.0[module]
                .iter()
                .find(|named| named.imported_as.as_ref() == Some(name));
            let target = import.map(|named| absolute(module, &named.path));
            // A name imported from another crate is the module's own.
            let Some(target) = target.filter(|target| self.is_inside(module, target)) else {
                return Some(module.to_vec());
            };
            path = [&target[..], &rest[1..]].concat();
        }
        None
    }

    /// Returns whether a path that a module imports leads to another module of the crate.
    fn is_inside(&self, module: &[String], target: &[String]) -> bool {
        let len = (0..=target.len())
            .rev()
            .find(|&len| self.0.contains_key(&target[..len]));
        len.is_some_and(|len| target[..len] != *module)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::a_crate;

    /// Returns the cycles of a crate with the modules `a`, `b` and `c`, of which `c` has the children `d` and `e`.
    fn cycles(a: &str, b: &str, d: &str, e: &str) -> Vec<String> {
        let dir = a_crate(&[
            (
                "lib.rs",
                "mod a;\nmod b;\npub mod c;\n#[cfg(test)]\nmod double;\npub use a::{\n    One,\n    Two as Other,\n};\npub const ROOT: u8 = 1;\n",
            ),
            ("a.rs", a),
            ("b.rs", b),
            ("c/mod.rs", "mod d;\nmod e;\npub use d::Deep;\n"),
            ("c/d.rs", d),
            ("c/e.rs", e),
            ("double.rs", "use crate::a;\n"),
        ]);
        let shown = |cycle: Cycle| format!("{}: {}", cycle.parent, Vec::from_iter(cycle.modules).join(" "));
        cycles_of(dir.path()).into_iter().map(shown).collect()
    }

    /// Uses in one direction form no cycle, nor do those of the parent's own items, of tests and of comments.
    #[test]
    fn one_direction_passes() {
        let no: [String; 0] = [];
        assert_eq!(
            cycles("use crate::b::X;", "use crate::c::Deep;", "use super::e;", ""),
            no
        );
        assert_eq!(cycles("use crate::{ROOT, b};", "use crate::ROOT;", "", ""), no);
        let tests =
            "#[cfg(test)]\nuse crate::a::X;\n#[cfg(test)]\npub mod tests {\n    use crate::a::X;\n}\n";
        assert_eq!(
            cycles("use crate::b::X;", &format!("// crate::a\n{tests}"), "", ""),
            no
        );
    }

    /// A cycle is detected at every depth, however the modules name each other.
    #[test]
    fn cycles_are_seen() {
        for b in [
            "use crate::a::X;",
            "use crate::One;",
            "use super::Other as Mine;",
            "#[cfg(test)]\nuse crate::c;\nuse crate::{\n    c::Deep,\n    a::{self},\n};",
            "fn f() {\n    crate::a::x();\n}",
        ] {
            assert_eq!(cycles("use crate::b::Y;", b, "", ""), [": a b"], "{b}");
        }
        assert_eq!(cycles("", "", "use super::e::X;", "use super::Deep;"), ["c: d e"]);
        assert_eq!(
            cycles("use crate::c::Deep;", "", "", "use crate::One;"),
            [": a c"]
        );
    }
}

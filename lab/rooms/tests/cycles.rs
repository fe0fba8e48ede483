//! Every crate can be read from the bottom up: no two modules beside each other use each other.

use std::path::{Path, PathBuf};

/// The folders of all crates, from the folder of the repository.
fn crates(repository: &Path) -> Vec<PathBuf> {
    let mut found = vec!["bindings/python".into(), "bindings/java/native".into()];
    for folder in ["crates", "papers", "lab"] {
        let entries = repository.join(folder).read_dir().expect("a folder");
        found.extend(entries.map(|entry| Path::new(folder).join(entry.expect("an entry").file_name())));
    }
    found.retain(|path: &PathBuf| repository.join(path).join("Cargo.toml").exists());
    found.sort();
    found
}

#[test]
fn modules_form_no_cycle() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates = crates(&repository);
    assert!(crates.len() > 15, "crates are missing: {crates:?}");
    let mut wrong = Vec::new();
    for path in crates {
        for cycle in wollemi_rooms::cycles_of(&repository.join(&path)) {
            wrong.push(format!("{} {cycle}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "modules use each other:\n{}", wrong.join("\n"));
}

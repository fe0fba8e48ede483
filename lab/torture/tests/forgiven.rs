//! The tables of persists that a hunt may forgive match the sites named in the sources.

use crashkit::blobs::Blobs;
use crashkit::forgiven::HEAP;
use crashkit::{Forgiven, Subject};
use std::collections::BTreeSet;
use std::path::Path;
use wollemi_torture::forgiven::TABLE;

/// Appends the text of all Rust sources in a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).expect("a source"));
        }
    }
}

/// Returns the names in calls of `Media::site`: their literals, and those of constants called `SITE`.
fn named(text: &str) -> BTreeSet<&str> {
    let after = |mark: &'static str| {
        text.match_indices(mark)
            .filter_map(move |(at, _)| text[at + mark.len()..].split('"').next())
    };
    after(".site(\"").chain(after("const SITE: &str = \"")).collect()
}

/// Every site has a row, and every row a site. A row without a site would forgive nothing, or one day something else.
#[test]
fn rows_and_sites_are_the_same() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut text = String::new();
    for folder in ["crates", "papers", "lab/crashkit/src/blobs"] {
        sources(&root.join(folder), &mut text);
    }
    text += &std::fs::read_to_string(root.join("lab/crashkit/src/blobs.rs")).expect("a source");
    let rows = HEAP.iter().chain(TABLE).chain(Blobs.forgiven());
    let rows: BTreeSet<&str> = rows.map(|row: &Forgiven| row.site).collect();
    assert_eq!(named(&text), rows);
}

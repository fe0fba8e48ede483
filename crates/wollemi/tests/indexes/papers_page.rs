//! The references in `docs/papers.md` exist.

use std::path::Path;

/// Each file that a table of the page names, relative to the repository's root, exists and contains what the table
/// says.
#[test]
fn the_papers_map_leads_to_what_there_is() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| {
        std::fs::read_to_string(repository.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    };
    let page = read("docs/papers.md");
    let mut files = 0;
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let place = row
            .trim_end_matches(" |")
            .rsplit(" | ")
            .next()
            .unwrap_or_default();
        let mut text = String::new();
        for (i, word) in place.split('`').enumerate() {
            if i % 2 == 0 {
                continue;
            }
            if word.ends_with(".rs") {
                text = read(word);
                files += 1;
            } else {
                let name = word.rsplit("::").next().unwrap_or(word);
                assert!(text.contains(name), "{row}: {word}");
            }
        }
    }
    assert!(files > 100, "{files}");
}

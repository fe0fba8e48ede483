//! What the names in a figure mean: its indexes, workloads and kinds of keys.

use crate::figures::draw::Drawn;
use crate::figures::svg::escape;
use crate::keys::KeyKind;
use crate::workload::Workload;
use clap::ValueEnum;
use std::fmt::Write;
use wollemi::indexes::IndexKind;

/// A line for each name that is one of ours.
pub fn explain(page: &mut String, figure: &Drawn) {
    let mut lines = String::new();
    for name in names(figure) {
        if let Some(about) = about(name) {
            // Writing to a string does not fail.
            let _ = writeln!(lines, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(&about));
        }
    }
    if !lines.is_empty() {
        let _ = writeln!(
            page,
            "<details><summary>Names</summary><dl>\n{lines}</dl></details>"
        );
    }
}

/// All that may be one, each once: series, places, and the words of titles.
fn names(figure: &Drawn) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for panel in &figure.panels {
        let series = panel.series.iter().map(|series| &*series.name);
        let words = panel
            .title
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        for name in series
            .chain(panel.places.iter().map(|place| &**place))
            .chain(words)
        {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

fn about(name: &str) -> Option<String> {
    let index = IndexKind::ALL.iter().find(|index| index.name() == name);
    let kind = || {
        KeyKind::from_str(name, false)
            .ok()?
            .to_possible_value()?
            .get_help()
            .cloned()
    };
    index
        .map(|index| index.about().to_owned())
        .or_else(|| Workload::named(name).map(|workload| workload.about.to_owned()))
        .or_else(|| kind().map(|help| format!("Keys: {help}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Indexes, workloads and kinds of keys are explained, and nothing else.
    #[test]
    fn names_are_explained() {
        for name in [
            "roart-without-smp",
            "part",
            "recipe-load-a",
            "scan100",
            "dense",
            "u64",
        ] {
            assert!(about(name).is_some_and(|about| about.len() > 10), "{name}");
        }
        assert_eq!(about("keys"), None);
    }
}

//! What the papers say beside what was measured, as one table for documents to show (Markdown).

use super::tables::beside;
use crate::figures::Conditions;
use crate::figures::build::Build;
use crate::figures::draw::{Drawn, Verdict};
use crate::figures::svg::{escape, short};
use std::fmt::Write;

/// Every number of a paper, figure by figure.
pub fn summary(conditions: &Conditions, figures: &[Drawn]) -> String {
    let Conditions {
        scale,
        keys,
        machine,
        build: Build { date, commit },
        ..
    } = conditions;
    let mut text = format!(
        "# The papers' numbers, measured\n\nScale {}, {} keys, {date}, commit {commit}. {}. The command that wrote this wrote a \
         page with all plots too; `docs/benchmarks.md` says how to read both.\n\n| | paper | here | |\n|---|---|---|---|\n",
        format!("{scale:?}").to_lowercase(),
        short(*keys as f64),
        machine.hardware(),
    );
    for figure in figures.iter().filter(|figure| !figure.claims.is_empty()) {
        // Writing to a string does not fail, here and below.
        let _ = writeln!(text, "| **{}** | | | |", escape(figure.title));
        for claim in &figure.claims {
            let _ = writeln!(
                text,
                "| {} | {} <small>{}</small> | {} | {} |",
                escape(&claim.what),
                escape(&claim.says),
                escape(claim.source),
                claim.ours.as_ref().map_or("–".into(), beside),
                claim.verdict.map_or("", Verdict::word),
            );
        }
    }
    text
}

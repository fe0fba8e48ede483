//! What the papers plot, as runs of ours: which cells, which of their numbers, and what the paper says beside them.
//!
//! What is said of a figure, and each number that a paper gives, is in `papers.toml` (`words`).
//!
//! Indexes come from the list of indexes: a figure shows all that are no ablations, and the ablations where they are
//! what the figure is about.

mod claim;
mod dptree;
mod figure;
mod maker;
mod measure;
mod ours;
mod recipe;
mod roart;
mod words;
mod wort;

pub use claim::{At, Claim, Said};
pub use figure::{Figure, Panel, Point, Scale};
pub use measure::Measure;

use maker::Maker;
use measure::{CACHE_MISSES, HARDWARE, MICROS, MOPS};
use wollemi::indexes::IndexKind;

/// The indexes that are shown everywhere: those that do all workloads.
fn shown() -> impl Iterator<Item = IndexKind> {
    IndexKind::ALL
        .iter()
        .copied()
        .filter(|index| !index.is_ablation() && index.is_ordered())
}

fn chain<T>(mut all: Vec<T>, more: impl IntoIterator<Item = T>) -> Vec<T> {
    all.extend(more);
    all
}

/// All figures at this scale, on this many cores.
pub fn figures(scale: Scale, cores: usize) -> Vec<Figure> {
    let maker = Maker {
        scale,
        keys: scale.keys(),
        cores,
    };
    let mut figures = ours::figures(&maker);
    figures.extend(roart::figures(&maker));
    figures.extend(recipe::figures(&maker));
    figures.extend(wort::figures(&maker));
    figures.extend(dptree::figures(&maker));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    /// Whether all panels that have one of its runs have it as often.
    fn shared(figures: &[Figure], panel: &Panel) -> bool {
        let cells: Vec<_> = panel.points.iter().map(|point| &point.cell).collect();
        let mut others = figures.iter().flat_map(|figure| &figure.panels);
        others.all(|other| {
            let both = other.points.iter().any(|point| cells.contains(&&point.cell));
            !both || other.runs == panel.runs
        })
    }

    /// Each figure has panels, each claim names points that its panel has, says where the paper has it and why ours may
    /// differ, numbers are numbers, and ids are unique. What a paper's text gives no number of that is measured here
    /// says so.
    #[test]
    fn figures_are_well_formed() {
        for (scale, cores) in [(Scale::Smoke, 1), (Scale::Laptop, 2), (Scale::Paper, 64)] {
            let figures = figures(scale, cores);
            for figure in &figures {
                assert!(!figure.panels.is_empty(), "{}", figure.id);
                assert_eq!(figures.iter().filter(|other| other.id == figure.id).count(), 1);
                let measured = figure.panels.iter().any(|panel| !panel.points.is_empty());
                let said = figure.ours || figure.paper.starts_with("Plot only");
                assert!(!figure.claims.is_empty() || said || !measured, "{}", figure.id);
                for panel in &figure.panels {
                    assert!(panel.runs > 0 && shared(&figures, panel), "{}", figure.id);
                    assert!(!panel.x.is_empty() && !panel.unit.is_empty(), "{}", figure.id);
                }
                for claim in &figure.claims {
                    let points = &figure.panels[claim.panel].points;
                    for at in [Some(&claim.of), claim.to.as_ref()].into_iter().flatten() {
                        let named = |point: &&Point| point.place == at.place && point.series == at.series;
                        assert_eq!(points.iter().filter(named).count(), 1, "{}: {claim:?}", figure.id);
                    }
                    let same = claim
                        .to
                        .as_ref()
                        .is_none_or(|to| (to.place == claim.of.place) != (to.series == claim.of.series));
                    assert!(same, "{}: {claim:?}", figure.id);
                    assert!(
                        claim.why.len() > 10 && !claim.source.is_empty(),
                        "{}: {claim:?}",
                        figure.id
                    );
                    assert!(figure.panels[claim.panel].is_of_one_measure());
                    let paper = claim.paper.interval();
                    assert!(
                        0.0 < paper.low && paper.low < paper.high,
                        "{}: {claim:?}",
                        figure.id
                    );
                }
            }
        }
    }

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        _args: crate::Args,
    }

    /// Every cell of every scale, on few and on many cores, is a command line of ours.
    #[test]
    fn cells_are_command_lines() {
        for scale in [Scale::Smoke, Scale::Laptop, Scale::Paper] {
            for cores in [1, 2, 16] {
                let figures = figures(scale, cores);
                let panels = figures.iter().flat_map(|figure| &figure.panels);
                for point in panels.flat_map(|panel| &panel.points) {
                    let words = point.cell.0.split_whitespace();
                    // As it is run.
                    let line = ["bench"].into_iter().chain(words).chain(["--json"]);
                    if let Err(error) = Line::try_parse_from(line) {
                        panic!("{}: {error}", point.cell.0);
                    }
                }
            }
        }
    }

    /// Bounds beside lookups are no ratios, indexes beside each other are; a bound alone is beside nothing.
    #[test]
    fn panels_of_one_measure() {
        for figure in figures(Scale::Laptop, 2) {
            for panel in &figure.panels {
                let alone = panel.points.windows(2).all(|two| two[0].series == two[1].series);
                let expected = figure.id != "limit" || alone;
                assert_eq!(panel.is_of_one_measure(), expected, "{}", panel.title);
            }
        }
    }
}

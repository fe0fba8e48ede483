//! What the papers plot, as runs of ours: which cells, which of their numbers, and what the paper says beside them.
//!
//! Indexes come from the list of indexes: a figure shows all that are no ablations, and the ablations where they are
//! what the figure is about.

mod dptree;
mod figure;
mod maker;
mod measure;
mod ours;
mod recipe;
mod roart;
mod wort;

pub use figure::{Claim, Figure, Panel, Point, Scale};
pub use measure::Measure;

use figure::{ratio, value};
use indexes::IndexKind;
use maker::Maker;
use measure::{CACHE_MISSES, HARDWARE, MICROS, MOPS};

/// The indexes that are shown everywhere.
fn shown() -> impl Iterator<Item = IndexKind> {
    IndexKind::ALL
        .iter()
        .copied()
        .filter(|index| !index.is_ablation())
}

fn chain(mut panels: Vec<Panel>, more: impl IntoIterator<Item = Panel>) -> Vec<Panel> {
    panels.extend(more);
    panels
}

/// All figures at this scale, on so many cores.
pub fn figures(scale: Scale, cores: usize) -> Vec<Figure> {
    let maker = Maker {
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

const OTHER_MEMORY: &str = "The paper ran on Optane with many cores; here it is DRAM, where fences cost less beside \
    misses, and as many threads as there are cores.";

#[cfg(test)]
mod tests {
    use super::*;

    /// Each figure has panels, each claim names points that its panel has and says why ours may differ, and ids are unique.
    #[test]
    fn figures_are_well_formed() {
        let figures = figures(Scale::Smoke, 2);
        for figure in &figures {
            assert!(!figure.panels.is_empty(), "{}", figure.id);
            assert_eq!(figures.iter().filter(|other| other.id == figure.id).count(), 1);
            for claim in &figure.claims {
                let points = &figure.panels[claim.panel].points;
                for series in [Some(claim.over), claim.under].into_iter().flatten() {
                    let named = |point: &&Point| point.place == claim.place && point.series == series;
                    assert_eq!(points.iter().filter(named).count(), 1, "{}: {claim:?}", figure.id);
                }
                assert!(claim.why.len() > 10, "{}: {claim:?}", figure.id);
            }
        }
    }
}

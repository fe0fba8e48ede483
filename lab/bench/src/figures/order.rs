//! In which order a round has its runs.

use super::cell::Cell;
use super::plan::{Figure, Panel};
use std::collections::HashSet;

/// Every cell once, or as often as its panel asks, figure by figure, panel by panel and place by place, with which of its own
/// rounds that is. Every second one has those of a place the other way round, so that over both what gets slower evenly
/// meets all of them alike; then another one comes first.
pub fn cells(figures: &[Figure], round: usize) -> Vec<(usize, Cell)> {
    let (mut cells, mut met) = (Vec::new(), HashSet::new());
    for panel in figures.iter().flat_map(|figure| &figure.panels) {
        for round in (round - 1) * panel.runs + 1..=round * panel.runs {
            for place in places(panel) {
                let points = panel.points.iter().filter(|point| point.place == place);
                let mut here: Vec<&Cell> = points
                    .map(|point| &point.cell)
                    .filter(|cell| met.insert((*cell, round)))
                    .collect();
                if here.is_empty() {
                    continue;
                }
                let first = (round - 1) / 2 % here.len();
                here.rotate_left(first);
                if round.is_multiple_of(2) {
                    here.reverse();
                }
                cells.extend(here.into_iter().map(|cell| (round, cell.clone())));
            }
        }
    }
    cells
}

/// In the order of their first use.
fn places(panel: &Panel) -> Vec<&str> {
    let mut places: Vec<&str> = Vec::new();
    for point in &panel.points {
        if !places.contains(&&*point.place) {
            places.push(&point.place);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::plan::{Measure, Point};
    use crate::figures::svg::Shape;

    /// Series stand side by side at each place, turn round and move on, and from one run of a round to the next; what a panel
    /// before has run is not run again.
    #[test]
    fn series_take_turns() {
        let panel = |runs: usize, cells: &[&str]| Panel {
            title: String::new(),
            shape: Shape::Bars,
            x: "",
            unit: "",
            // One series after the other.
            points: cells
                .iter()
                .map(|cell| Point {
                    series: cell[..1].into(),
                    place: cell[1..].into(),
                    cell: Cell((*cell).into()),
                    pick: vec![],
                    measure: Measure::Mops,
                })
                .collect(),
            runs,
        };
        let figure = Figure {
            id: "id",
            title: "",
            ours: false,
            paper: "",
            panels: vec![
                panel(1, &["a1", "a2", "b1", "b2", "c1", "c2"]),
                panel(1, &["a2", "c3", "b2"]),
                panel(2, &["a4", "b4"]),
            ],
            claims: vec![],
            differs: "",
        };
        let of = |round| {
            let names: Vec<String> = cells(std::slice::from_ref(&figure), round)
                .into_iter()
                .map(|(round, cell)| format!("{}.{round}", cell.0))
                .collect();
            names.join(" ")
        };
        assert_eq!(of(1), "a1.1 b1.1 c1.1 a2.1 b2.1 c2.1 c3.1 a4.1 b4.1 b4.2 a4.2");
        assert_eq!(of(2), "c1.2 b1.2 a1.2 c2.2 b2.2 a2.2 c3.2 b4.3 a4.3 a4.4 b4.4");
        assert_eq!(of(3), "b1.3 c1.3 a1.3 b2.3 c2.3 a2.3 c3.3 a4.5 b4.5 b4.6 a4.6");
        assert_eq!(of(4), "a1.4 c1.4 b1.4 a2.4 c2.4 b2.4 c3.4 b4.7 a4.7 a4.8 b4.8");
    }
}

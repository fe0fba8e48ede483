//! In which order a round has its runs.

use super::cell::Cell;
use super::plan::{Figure, Panel};
use std::collections::HashSet;

/// Every cell once, figure by figure, panel by panel and place by place. Every second round has those of a place the other
/// way round, so that over both what gets slower evenly meets all of them alike; then another one comes first.
pub fn cells(figures: &[Figure], round: usize) -> Vec<Cell> {
    let (mut cells, mut met) = (Vec::new(), HashSet::new());
    for panel in figures.iter().flat_map(|figure| &figure.panels) {
        for place in places(panel) {
            let points = panel.points.iter().filter(|point| point.place == place);
            let mut here: Vec<&Cell> = points
                .map(|point| &point.cell)
                .filter(|cell| met.insert(*cell))
                .collect();
            if here.is_empty() {
                continue;
            }
            let first = (round - 1) / 2 % here.len();
            here.rotate_left(first);
            if round.is_multiple_of(2) {
                here.reverse();
            }
            cells.extend(here.into_iter().cloned());
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

    /// Series stand side by side at each place, turn round and move on; what a panel before has run is not run again.
    #[test]
    fn series_take_turns() {
        let panel = |cells: &[&str]| Panel {
            title: String::new(),
            shape: Shape::Bars,
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
        };
        let figure = Figure {
            id: "id",
            title: "",
            paper: "",
            panels: vec![
                panel(&["a1", "a2", "b1", "b2", "c1", "c2"]),
                panel(&["a2", "c3", "b2"]),
            ],
            claims: vec![],
            differs: "",
        };
        let of = |round| {
            let names: Vec<String> = cells(std::slice::from_ref(&figure), round)
                .into_iter()
                .map(|cell| cell.0)
                .collect();
            names.join(" ")
        };
        assert_eq!(of(1), "a1 b1 c1 a2 b2 c2 c3");
        assert_eq!(of(2), "c1 b1 a1 c2 b2 a2 c3");
        assert_eq!(of(3), "b1 c1 a1 b2 c2 a2 c3");
        assert_eq!(of(4), "a1 c1 b1 a2 c2 b2 c3");
    }
}

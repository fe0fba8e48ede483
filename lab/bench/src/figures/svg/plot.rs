//! Bars and lines over labelled places.

use super::axes::{Axis, LEFT, Legend, TOP, below};
use super::picture::picture;
use super::{DRIFTED, Labels, Series, Shape, colour, escape, short};
use crate::figures::sample::Value;
use crate::summary::Summary;
use std::fmt::Write;

const HEIGHT: f64 = 240.0;

/// Draws the series over the places.
pub fn plot(shape: Shape, labels: &Labels<'_>, places: &[String], series: &[Series]) -> String {
    let count = series.len().max(1) as f64;
    let group = match shape {
        Shape::Bars => (count * 13.0 + 22.0).max(70.0),
        Shape::Lines | Shape::Timeline => (620.0 / places.len().max(1) as f64).clamp(70.0, 160.0),
    };
    let inner = (group * places.len() as f64).max(560.0);
    let group = inner / places.len().max(1) as f64;
    let values = || series.iter().flat_map(|one| one.values.iter().flatten());
    let least = values()
        .map(|value| value.summary.least)
        .fold(f64::INFINITY, f64::min);
    let most = values().map(|value| value.summary.most).fold(0.0, f64::max);
    let axis = match shape {
        Shape::Bars => Axis::new(TOP, HEIGHT, most),
        Shape::Lines | Shape::Timeline => Axis::of_lines(TOP, HEIGHT, least, most),
    };
    let y = |value: f64| axis.y(value);
    let x = |place: usize| LEFT + group * (place as f64 + 0.5);
    let legend = Legend::new(series.iter().map(|one| &*one.name), inner);
    let mut svg = String::new();
    axis.draw(&mut svg, inner, labels.y);
    below(&mut svg, LEFT + inner / 2.0, TOP + HEIGHT + 36.0, labels.x);
    for (place, label) in places.iter().enumerate() {
        below(&mut svg, x(place), TOP + HEIGHT + 18.0, label);
    }
    for (i, one) in series.iter().enumerate() {
        match shape {
            Shape::Bars => bars(&mut svg, i, series.len(), one, group, &x, &y),
            Shape::Lines | Shape::Timeline => line(&mut svg, i, one, &x, &y),
        }
    }
    legend.draw(&mut svg, TOP + HEIGHT + 60.0);
    let drifted = values().any(|value| value.drifted > 0);
    let note = note(shape, drifted);
    picture(labels, inner, TOP + HEIGHT + 56.0 + legend.height(), &note, &svg)
}

/// What the marks are.
fn note(shape: Shape, drifted: bool) -> String {
    let (marks, mark) = match shape {
        Shape::Bars => ("Bars", DRIFTED),
        Shape::Lines | Shape::Timeline => ("Points", "Hollow"),
    };
    let mut note = format!("{marks}: medians of the rounds; thin lines: least to most.");
    if drifted {
        let _ = write!(note, " {mark}: memory changed its pace during a run.");
    }
    note
}

fn bars(
    svg: &mut String,
    i: usize,
    count: usize,
    series: &Series,
    group: f64,
    x: &dyn Fn(usize) -> f64,
    y: &dyn Fn(f64) -> f64,
) {
    let width = ((group - 16.0) / count as f64).min(40.0);
    for (place, value) in series.values.iter().enumerate() {
        let Some(Value { summary, drifted }) = *value else {
            continue;
        };
        let Summary { median, least, most } = summary;
        let left = x(place) + (i as f64 - count as f64 / 2.0) * width;
        let middle = left + width / 2.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"><title>{}: {}</title></rect>",
            y(median),
            (width - 1.0).max(1.0),
            (y(0.0) - y(median)).max(0.0),
            colour(i),
            escape(&series.name),
            short(median)
        );
        if most > least {
            let _ = writeln!(
                svg,
                "<line x1=\"{middle:.1}\" x2=\"{middle:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"#222\"/>",
                y(least),
                y(most)
            );
        }
        if drifted > 0 {
            below(svg, middle, y(most) - 3.0, DRIFTED);
        }
    }
}

/// Thin upright lines are the extremes; points in whose runs the memory changed its pace are hollow.
fn line(svg: &mut String, i: usize, series: &Series, x: &dyn Fn(usize) -> f64, y: &dyn Fn(f64) -> f64) {
    let known = series
        .values
        .iter()
        .enumerate()
        .filter_map(|(place, value)| Some((place, (*value)?)));
    let points: Vec<String> = known
        .clone()
        .map(|(place, value)| format!("{:.1},{:.1}", x(place), y(value.summary.median)))
        .collect();
    let dash = if i >= 7 { " stroke-dasharray=\"6 3\"" } else { "" };
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{dash}/>",
        points.join(" "),
        colour(i)
    );
    for (place, Value { summary, drifted }) in known {
        let (colour, Summary { median, least, most }) = (colour(i), summary);
        if most > least {
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"1\"/>",
                y(least),
                y(most),
                x = x(place),
            );
        }
        let fill = if drifted > 0 { "#fff" } else { colour };
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.5\">\
             <title>{}: {}</title></circle>",
            x(place),
            y(median),
            escape(&series.name),
            short(median)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plot has a mark for each value, another one where the memory's pace drifted, and no text that is markup.
    #[test]
    fn plots_show_every_value() {
        let value = |drifted| {
            Some(Value {
                summary: Summary {
                    median: 2.0,
                    least: 1.0,
                    most: 3.0,
                },
                drifted,
            })
        };
        let places = ["a<b".to_owned(), "c".to_owned()];
        let series = [
            Series {
                name: "x".into(),
                values: vec![value(0), value(1)],
            },
            Series {
                name: "y".into(),
                values: vec![None, value(0)],
            },
        ];
        let labels = Labels {
            title: "title",
            heading: None,
            x: "kind",
            y: "Mops/s",
        };
        let bars = plot(Shape::Bars, &labels, &places, &series);
        assert_eq!(bars.matches("</title></rect>").count(), 3);
        assert_eq!(bars.matches(DRIFTED).count(), 1);
        assert!(bars.contains(">kind<") && bars.contains(">Mops/s<"));
        let alone = Labels {
            heading: Some(("figure", "title")),
            ..labels
        };
        assert!(plot(Shape::Bars, &alone, &places, &series).contains("†: memory changed"));
        assert!(!plot(Shape::Bars, &alone, &places, &series[1..1]).contains("memory changed"));
        assert!(bars.contains("a&lt;b") && !bars.contains("a<b"));
        let lines = plot(Shape::Lines, &labels, &places, &series);
        let upright = |svg: &str, colour: &str| svg.matches(&format!("stroke=\"{colour}\"")).count();
        assert_eq!(
            (
                lines.matches("<circle").count(),
                lines.matches("<polyline").count()
            ),
            (3, 2)
        );
        // A line, and for each point its rim and its extremes.
        assert_eq!([0, 1].map(|series| upright(&lines, colour(series))), [5, 3]);
        assert_eq!(lines.matches("fill=\"#fff\"").count(), 1);
    }
}

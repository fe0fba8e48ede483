//! Plots as SVG: grouped bars, and lines over labelled places. Nothing else is needed to look at them.

use crate::summary::Summary;
use std::fmt::Write;

/// How a plot is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A group of bars for each place.
    Bars,
    /// A line for each series.
    Lines,
}

/// One series: a value, or none, for each place.
#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    pub values: Vec<Option<Summary>>,
}

/// Colours that the colour-blind can tell apart (Okabe and Ito), then the same again lighter.
const COLOURS: &[&str] = &[
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5c4a72", "#8a8a8a", "#7fb8d8",
    "#eaae7f", "#7fceb9", "#e5bbd2", "#b8a800", "#444444",
];

fn colour(series: usize) -> &'static str {
    COLOURS[series % COLOURS.len()]
}

/// Text as SVG and HTML take it.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A step of 1, 2 or 5 times a power of ten that cuts `most` into at most five.
fn step(most: f64) -> f64 {
    let power = 10f64.powf((most / 5.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| most / step <= 5.0)
        .unwrap_or(10.0 * power)
}

/// A number as short as it can be read.
pub fn short(value: f64) -> String {
    let text = match value.abs() {
        size if size >= 1e9 => format!("{:.1}G", value / 1e9),
        size if size >= 1e6 => format!("{:.1}M", value / 1e6),
        size if size >= 1e4 => format!("{:.0}k", value / 1e3),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 || size == 0.0 => format!("{value:.2}"),
        // Two digits, wherever they begin; what is smaller than nine decimals shows is nothing.
        size => format!("{value:.*}", (1.0 - size.log10().floor()).min(9.0) as usize),
    };
    match text.strip_suffix(".00") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// What an axis says at `tick`: as many decimals as its steps have.
fn label(tick: f64, step: f64) -> String {
    let decimals = (-step.log10()).ceil().clamp(0.0, 9.0) as usize;
    match tick {
        0.0 => "0".into(),
        tick if tick < 1e4 => format!("{tick:.decimals$}"),
        _ => short(tick),
    }
}

const LEFT: f64 = 64.0;
const TOP: f64 = 12.0;
const HEIGHT: f64 = 240.0;
const LEGEND_LINE: f64 = 20.0;

/// Draws the series over the places.
pub fn plot(shape: Shape, y_label: &str, places: &[String], series: &[Series]) -> String {
    let count = series.len().max(1) as f64;
    let group = match shape {
        Shape::Bars => (count * 13.0 + 22.0).max(70.0),
        Shape::Lines => (620.0 / places.len().max(1) as f64).clamp(70.0, 160.0),
    };
    let inner = (group * places.len() as f64).max(560.0);
    let group = inner / places.len().max(1) as f64;
    let most = series
        .iter()
        .flat_map(|one| one.values.iter().flatten())
        .map(|value| value.most)
        .fold(0.0, f64::max);
    let most = if most > 0.0 { most * 1.05 } else { 1.0 };
    let y = |value: f64| TOP + HEIGHT * (1.0 - value / most);
    let x = |place: usize| LEFT + group * (place as f64 + 0.5);
    let rows = legend_rows(series, inner);
    let height = TOP + HEIGHT + 34.0 + rows.len() as f64 * LEGEND_LINE;
    let width = LEFT + inner + 12.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         role=\"img\" style=\"background:#fff\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n"
    );
    let mut tick = 0.0;
    while tick <= most {
        let at = y(tick);
        // Writing to a string does not fail, here and below.
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" \
             y=\"{:.1}\" text-anchor=\"end\" fill=\"#444\">{}</text>",
            LEFT + inner,
            LEFT - 6.0,
            at + 4.0,
            label(tick, step(most))
        );
        tick += step(most);
    }
    let _ = writeln!(
        svg,
        "<text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\" fill=\"#222\">{}</text>",
        TOP + HEIGHT / 2.0,
        escape(y_label)
    );
    for (place, label) in places.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#222\">{}</text>",
            x(place),
            TOP + HEIGHT + 18.0,
            escape(label)
        );
    }
    for (i, one) in series.iter().enumerate() {
        match shape {
            Shape::Bars => bars(&mut svg, i, series.len(), one, group, &x, &y),
            Shape::Lines => line(&mut svg, i, one, &x, &y),
        }
    }
    for (row, names) in rows.iter().enumerate() {
        let at = TOP + HEIGHT + 40.0 + row as f64 * LEGEND_LINE;
        for &(i, from) in names {
            let _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"11\" height=\"11\" fill=\"{}\"/><text x=\"{:.1}\" \
                 y=\"{:.1}\" fill=\"#222\">{}</text>",
                LEFT + from,
                at - 9.0,
                colour(i),
                LEFT + from + 16.0,
                at + 1.0,
                escape(&series[i].name)
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Which names go into which row of the legend, and where in it.
fn legend_rows(series: &[Series], inner: f64) -> Vec<Vec<(usize, f64)>> {
    let mut rows: Vec<Vec<(usize, f64)>> = Vec::new();
    let mut from = f64::INFINITY;
    for (i, one) in series.iter().enumerate() {
        let width = 34.0 + one.name.chars().count() as f64 * 7.0;
        if from + width > inner {
            rows.push(Vec::new());
            from = 0.0;
        }
        if let Some(row) = rows.last_mut() {
            row.push((i, from));
        }
        from += width;
    }
    rows
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
        let Some(Summary { median, least, most }) = *value else {
            continue;
        };
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
    }
}

fn line(svg: &mut String, i: usize, series: &Series, x: &dyn Fn(usize) -> f64, y: &dyn Fn(f64) -> f64) {
    let known = series
        .values
        .iter()
        .enumerate()
        .filter_map(|(place, value)| Some((place, (*value)?)));
    let points: Vec<String> = known
        .clone()
        .map(|(place, value)| format!("{:.1},{:.1}", x(place), y(value.median)))
        .collect();
    let dash = if i >= 7 { " stroke-dasharray=\"6 3\"" } else { "" };
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{dash}/>",
        points.join(" "),
        colour(i)
    );
    for (place, value) in known {
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{}\"><title>{}: {}</title></circle>",
            x(place),
            y(value.median),
            colour(i),
            escape(&series.name),
            short(value.median)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Axes are cut into few round steps.
    #[test]
    fn steps_are_round() {
        for (most, expected) in [(1.0, 0.2), (4.9, 1.0), (5.1, 2.0), (30.0, 10.0), (0.003, 0.001)] {
            assert!(
                (step(most) / expected - 1.0).abs() < 1e-9,
                "{most}: {}",
                step(most)
            );
        }
    }

    /// Small numbers keep two digits.
    #[test]
    fn numbers_are_short() {
        for (value, expected) in [
            (0.0, "0"),
            (3.0, "3"),
            (0.016, "0.02"),
            (0.0044, "0.0044"),
            (0.000_123, "0.00012"),
            (1_234.5, "1234"),
            (125_000.0, "125k"),
        ] {
            assert_eq!(short(value), expected);
        }
    }

    /// Ticks of one axis are alike.
    #[test]
    fn ticks_are_alike() {
        let ticks = |ticks: [f64; 3], step| ticks.map(|tick| label(tick, step));
        assert_eq!(ticks([0.0, 5.0, 10.0], 5.0), ["0", "5", "10"]);
        assert_eq!(ticks([0.5, 1.0, 1.5], 0.5), ["0.5", "1.0", "1.5"]);
        assert_eq!(ticks([0.02, 0.1, 0.2], 0.02), ["0.02", "0.10", "0.20"]);
        assert_eq!(
            ticks([2_000.0, 10_000.0, 12_000.0], 2_000.0),
            ["2000", "10k", "12k"]
        );
    }

    /// A plot has a mark for each value, and no text that is markup.
    #[test]
    fn plots_show_every_value() {
        let value = Some(Summary {
            median: 2.0,
            least: 1.0,
            most: 3.0,
        });
        let places = ["a<b".to_owned(), "c".to_owned()];
        let series = [
            Series {
                name: "x".into(),
                values: vec![value, value],
            },
            Series {
                name: "y".into(),
                values: vec![None, value],
            },
        ];
        let bars = plot(Shape::Bars, "Mops/s", &places, &series);
        assert_eq!(bars.matches("<title>").count(), 3);
        assert!(bars.contains("a&lt;b") && !bars.contains("a<b"));
        let lines = plot(Shape::Lines, "Mops/s", &places, &series);
        assert_eq!(
            (
                lines.matches("<circle").count(),
                lines.matches("<polyline").count()
            ),
            (3, 2)
        );
    }
}

//! Plots as SVG: grouped bars, lines over labelled places, and timelines. Nothing else is needed to look at them.

mod axes;
mod picture;
mod plot;
mod timeline;

pub use plot::plot;
pub use timeline::timelines;

use super::sample::Value;
use serde::Serialize;

/// How a plot is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A group of bars for each place.
    Bars,
    /// A line for each series.
    Lines,
    /// What was done when, below it the longest calls.
    Timeline,
}

/// What a plot says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'l> {
    /// What it shows, for who cannot see it.
    pub title: &'l str,
    /// Drawn above it, where nothing around it says so: the figure, and what of it.
    pub heading: Option<(&'l str, &'l str)>,
    /// The names of the axes, below and beside.
    pub x: &'l str,
    pub y: &'l str,
}

/// One series: a value, or none, for each place.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    pub name: String,
    pub values: Vec<Option<Value>>,
}

/// What marks a value in whose runs the memory changed its pace.
pub const DRIFTED: &str = "†";

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

/// A number as short as it can be read.
pub fn short(value: f64) -> String {
    let text = match value.abs() {
        size if size >= 1e9 => format!("{:.1}G", value / 1e9),
        size if size >= 1e6 => format!("{:.1}M", value / 1e6),
        size if size >= 1e4 => format!("{:.0}k", value / 1e3),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 || size == 0.0 => format!("{value:.2}"),
        // Two digits, wherever they begin; what is smaller than nine decimals shows is nothing.
        size => {
            let digits = format!("{value:.*}", (1.0 - size.log10().floor()).min(9.0) as usize);
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    };
    match text.strip_suffix(".00") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small numbers keep two digits.
    #[test]
    fn numbers_are_short() {
        for (value, expected) in [
            (0.0, "0"),
            (3.0, "3"),
            (0.28, "0.28"),
            (0.016, "0.016"),
            (0.05, "0.05"),
            (1e-12, "0"),
            (0.0044, "0.0044"),
            (0.000_123, "0.00012"),
            (1_234.5, "1234"),
            (125_000.0, "125k"),
        ] {
            assert_eq!(short(value), expected);
        }
    }
}

//! What plots have in common: the vertical scale, what stands below, the legend.

use super::{colour, escape, short};
use std::fmt::Write;

/// Where plots begin, right of what the scale says.
pub const LEFT: f64 = 64.0;
/// Below the frame's upper edge.
pub const TOP: f64 = 12.0;
const LEGEND_LINE: f64 = 20.0;

/// A vertical scale.
pub struct Axis {
    top: f64,
    height: f64,
    scale: Scale,
}

/// What lies between the lower end of an axis and the upper.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    /// From zero on, up to this.
    Linear(f64),
    /// Powers of ten, by their exponents: from one to another.
    Logarithmic(i32, i32),
}

/// Values of more than this many times the least are not told apart on a scale from zero on.
const TWO_DECADES: f64 = 100.0;

impl Scale {
    /// From zero on, up to `most`.
    fn linear(most: f64) -> Scale {
        Scale::Linear(if most > 0.0 { most * 1.05 } else { 1.0 })
    }

    /// From zero on, or over whole decades where values lie over more than two.
    fn of_lines(least: f64, most: f64) -> Scale {
        match least > 0.0 && most > least * TWO_DECADES {
            true => Scale::Logarithmic(least.log10().floor() as i32, most.log10().ceil() as i32),
            false => Scale::linear(most),
        }
    }
}

impl Axis {
    /// From zero up to `most`, over this many pixels below `top`.
    pub fn new(top: f64, height: f64, most: f64) -> Axis {
        let scale = Scale::linear(most);
        Axis { top, height, scale }
    }

    /// The same for lines, whose points say where they lie and not how far from zero: logarithmic, where these are over
    /// more than two decades.
    pub fn of_lines(top: f64, height: f64, least: f64, most: f64) -> Axis {
        let scale = Scale::of_lines(least, most);
        Axis { top, height, scale }
    }

    /// Where a value lies.
    pub fn y(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear(most) => value / most,
            Scale::Logarithmic(from, to) => (value.log10() - f64::from(from)) / f64::from(to - from),
        };
        self.top + self.height * (1.0 - share)
    }

    /// Draws its lines over `inner` pixels, and what it is of.
    pub fn draw(&self, svg: &mut String, inner: f64, what: &str) {
        let mut what = what.to_owned();
        match self.scale {
            Scale::Linear(most) => {
                let mut tick = 0.0;
                while tick <= most {
                    self.tick(svg, inner, tick, Some(&label(tick, step(most))));
                    tick += step(most);
                }
            }
            Scale::Logarithmic(from, to) => {
                what += ", logarithmic";
                for exponent in from..=to {
                    let power = 10f64.powi(exponent);
                    self.tick(svg, inner, power, Some(&label(power, power)));
                    for tick in (2..10).filter(|_| exponent < to) {
                        self.tick(svg, inner, f64::from(tick) * power, None);
                    }
                }
            }
        }
        let _ = writeln!(
            svg,
            "<text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\" fill=\"#222\">{}</text>",
            self.top + self.height / 2.0,
            escape(&what)
        );
    }

    /// A line across, fainter where nothing is said of it.
    fn tick(&self, svg: &mut String, inner: f64, tick: f64, label: Option<&str>) {
        let (at, right) = (self.y(tick), LEFT + inner);
        let colour = if label.is_some() { "#ddd" } else { "#f2f2f2" };
        // Writing to a string does not fail, here and below.
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{right:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"{colour}\"/>"
        );
        if let Some(label) = label {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#444\">{label}</text>",
                LEFT - 6.0,
                at + 4.0,
            );
        }
    }
}

/// What stands below a plot at `x`.
pub fn below(svg: &mut String, x: f64, y: f64, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"#222\">{}</text>",
        escape(text)
    );
}

/// A step of 1, 2 or 5 times a power of ten that cuts `most` into at most five.
pub fn step(most: f64) -> f64 {
    let power = 10f64.powf((most / 5.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| most / step <= 5.0)
        .unwrap_or(10.0 * power)
}

/// What an axis says at `tick`: as many decimals as its steps have.
pub fn label(tick: f64, step: f64) -> String {
    let decimals = (-step.log10()).ceil().clamp(0.0, 9.0) as usize;
    match tick {
        0.0 => "0".into(),
        tick if tick < 1e4 => format!("{tick:.decimals$}"),
        _ => short(tick),
    }
}

/// The names of series, in rows.
pub struct Legend<'n> {
    names: Vec<&'n str>,
    /// Which names go into which row, and where in it.
    rows: Vec<Vec<(usize, f64)>>,
}

impl<'n> Legend<'n> {
    /// In rows of `inner` pixels.
    pub fn new(names: impl Iterator<Item = &'n str>, inner: f64) -> Legend<'n> {
        let names: Vec<&str> = names.collect();
        let mut rows: Vec<Vec<(usize, f64)>> = Vec::new();
        let mut from = f64::INFINITY;
        for (i, name) in names.iter().enumerate() {
            let width = 34.0 + name.chars().count() as f64 * 7.0;
            if from + width > inner {
                rows.push(Vec::new());
                from = 0.0;
            }
            if let Some(row) = rows.last_mut() {
                row.push((i, from));
            }
            from += width;
        }
        Legend { names, rows }
    }

    /// What it takes.
    pub fn height(&self) -> f64 {
        self.rows.len() as f64 * LEGEND_LINE
    }

    /// Draws it, the first row on the line `top`.
    pub fn draw(&self, svg: &mut String, top: f64) {
        for (row, names) in self.rows.iter().enumerate() {
            let at = top + row as f64 * LEGEND_LINE;
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
                    escape(self.names[i])
                );
            }
        }
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
        let powers = (-3..=6).map(|exponent| 10f64.powi(exponent));
        let powers: Vec<String> = powers.map(|power| label(power, power)).collect();
        let expected = [
            "0.001", "0.01", "0.1", "1", "10", "100", "1000", "10k", "100k", "1.0M",
        ];
        assert_eq!(powers, expected);
    }

    /// Lines over more than two decades have a scale of whole decades, on which each takes as much; what has a zero, or
    /// lies closer together, has one from zero on.
    #[test]
    fn lines_over_many_decades_are_logarithmic() {
        assert_eq!(Scale::of_lines(7.8, 3494.0), Scale::Logarithmic(0, 4));
        assert_eq!(Scale::of_lines(0.01, 1.1), Scale::Logarithmic(-2, 1));
        for (least, most) in [(7.8, 780.0), (0.0, 3494.0), (1.0, 1.0), (f64::INFINITY, 0.0)] {
            assert!(
                matches!(Scale::of_lines(least, most), Scale::Linear(_)),
                "{least} to {most}"
            );
        }
        let axis = Axis::of_lines(10.0, 200.0, 7.8, 3494.0);
        let at = [1.0, 10.0, 100.0, 10_000.0].map(|value| axis.y(value).round());
        assert_eq!(at, [210.0, 160.0, 110.0, 10.0]);
        let mut svg = String::new();
        axis.draw(&mut svg, 560.0, "ms");
        assert!(svg.contains("ms, logarithmic"));
        // Five powers of ten, and between them eight lines each.
        assert_eq!(
            (
                svg.matches("<line").count(),
                svg.matches("text-anchor=\"end\"").count()
            ),
            (37, 5)
        );
        svg.clear();
        Axis::new(10.0, 200.0, 4.9).draw(&mut svg, 560.0, "ms");
        assert!(!svg.contains("logarithmic") && svg.contains(">4<"));
    }
}

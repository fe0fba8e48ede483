//! What was done when: the rate, and below it the longest call, over time.

use super::axes::{Axis, LEFT, Legend, TOP, below, label, step};
use super::picture::picture;
use super::{Labels, colour};
use crate::figures::draw::NamedTimeline;
use crate::latency::Timeline;
use std::fmt::Write;

const INNER: f64 = 620.0;
const HEIGHT: f64 = 150.0;
const GAP: f64 = 18.0;

/// What stands at its foot.
const NOTE: &str = "The first round. Above, operations a second; below, the longest call of each slot.";

/// Draws timelines over each other, all from their beginning on.
pub fn timelines(labels: &Labels<'_>, timelines: &[NamedTimeline]) -> String {
    let longest =
        |of: &dyn Fn(&Timeline) -> f64| timelines.iter().map(|one| of(&one.timeline)).fold(0.0, f64::max);
    let span = longest(&|one| (one.ops.len() as u64 * one.slot_ms) as f64).max(1.0);
    let greatest = |points: Vec<(f64, f64)>| points.into_iter().map(|(_, value)| value).fold(0.0, f64::max);
    let lower = TOP + HEIGHT + GAP;
    let plots = [
        (
            Axis::new(TOP, HEIGHT, longest(&|one| greatest(rates(one)))),
            "Mops/s",
            rates as fn(&Timeline) -> Vec<(f64, f64)>,
        ),
        (
            Axis::new(lower, HEIGHT, longest(&|one| greatest(longest_calls(one)))),
            labels.y,
            longest_calls,
        ),
    ];
    let legend = Legend::new(timelines.iter().map(|one| &*one.name), INNER);
    let bottom = lower + HEIGHT;
    let mut svg = String::new();
    let x = |ms: f64| LEFT + INNER * ms / span;
    for (axis, what, points) in &plots {
        axis.draw(&mut svg, INNER, what);
        for (i, one) in timelines.iter().enumerate() {
            let points: Vec<String> = points(&one.timeline)
                .into_iter()
                .map(|(ms, value)| format!("{:.1},{:.1}", x(ms), axis.y(value)))
                .collect();
            // Writing to a string does not fail.
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>",
                points.join(" "),
                colour(i)
            );
        }
    }
    let (mut tick, step) = (0.0, step(span));
    while tick <= span {
        below(&mut svg, x(tick), bottom + 18.0, &label(tick, step));
        tick += step;
    }
    let x_label = format!("{}, ms", labels.x);
    below(&mut svg, LEFT + INNER / 2.0, bottom + 36.0, &x_label);
    legend.draw(&mut svg, bottom + 60.0);
    picture(labels, INNER, bottom + 56.0 + legend.height(), NOTE, &svg)
}

/// The middle of each slot, and millions of operations a second in it. The last slot is not whole: it is left out, unless
/// it is all there is.
fn rates(timeline: &Timeline) -> Vec<(f64, f64)> {
    let whole = timeline.ops.len().saturating_sub(1).max(1);
    let rate = |ops: &u64| *ops as f64 / timeline.slot_ms as f64 / 1e3;
    middles(timeline)
        .zip(timeline.ops.iter().take(whole).map(rate))
        .collect()
}

/// The middle of each slot, and milliseconds of the longest call in it.
fn longest_calls(timeline: &Timeline) -> Vec<(f64, f64)> {
    middles(timeline)
        .zip(timeline.max_us.iter().map(|us| *us as f64 / 1e3))
        .collect()
}

fn middles(timeline: &Timeline) -> impl Iterator<Item = f64> + use<> {
    let slot = timeline.slot_ms as f64;
    (0..).map(move |i: u32| (f64::from(i) + 0.5) * slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates are of whole slots, calls of all; each timeline has a line in both plots.
    #[test]
    fn timelines_show_rates_and_calls() {
        let timeline = Timeline {
            slot_ms: 2,
            ops: vec![4_000, 2_000, 1],
            max_us: vec![10, 3_000, 0],
        };
        assert_eq!(rates(&timeline), [(1.0, 2.0), (3.0, 1.0)]);
        assert_eq!(longest_calls(&timeline), [(1.0, 0.01), (3.0, 3.0), (5.0, 0.0)]);
        let named = ["a", "b"].map(|name| NamedTimeline {
            name: name.into(),
            timeline: timeline.clone(),
        });
        let labels = Labels {
            title: "",
            heading: None,
            x: "time",
            y: "longest call, ms",
        };
        let svg = timelines(&labels, &named);
        assert_eq!(svg.matches("<polyline").count(), 4);
        assert!(svg.contains("longest call, ms") && svg.contains(">time, ms<") && svg.contains(">6<"));
        assert!(timelines(&labels, &[]).ends_with("</svg>\n"));
    }
}

//! The page's tables.

use crate::figures::against::Against;
use crate::figures::draw::{Drawn, DrawnClaim, DrawnPanel, Ours, Verdict};
use crate::figures::ratio::{Interval, Ratio};
use crate::figures::sample::Value;
use crate::figures::svg::{DRIFTED, escape, short};
use crate::summary::Summary;
use std::fmt::Write;

/// The panel's numbers: a row a series, with its ratio to the first where the papers compare.
pub fn numbers(page: &mut String, panel: &DrawnPanel) {
    // Writing to a string does not fail, here and below.
    let _ = write!(
        page,
        "<div class=\"scroll\"><table><tr><th>{}</th>",
        escape(panel.unit)
    );
    for place in &panel.places {
        let _ = write!(page, "<th>{}</th>", escape(place));
    }
    page.push_str("</tr>\n");
    for one in &panel.series {
        let _ = write!(page, "<tr><td>{}</td>", escape(&one.name));
        for (place, value) in panel.places.iter().zip(&one.values) {
            let mut ratios = panel.ratios.iter();
            let ratio = ratios.find(|ratio| ratio.over == one.name && ratio.place == *place);
            let _ = write!(page, "<td>{}</td>", number(value, ratio));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
}

fn number(value: &Option<Value>, ratio: Option<&Ratio>) -> String {
    let Some(Value { summary, drifted }) = value else {
        return "–".into();
    };
    let mut text = with_spread(summary);
    if *drifted > 0 {
        let _ = write!(text, "<sup title=\"the memory changed its pace\">{DRIFTED}</sup>");
    }
    if let Some(ratio) = ratio {
        let _ = write!(
            text,
            " <small>×{}{}</small>",
            short(ratio.ratio),
            plus_minus(ratio.stated)
        );
    }
    text
}

/// How far a ratio's stated interval goes.
fn plus_minus(stated: Option<Interval>) -> String {
    match stated.map(|stated| stated.half_width() * 100.0) {
        // Too few rounds to tell anything.
        Some(percent) if percent > 100.0 => " ±?".to_owned(),
        Some(percent) if percent >= 0.5 => format!(" ±{percent:.0}%"),
        _ => String::new(),
    }
}

/// The median, and the extremes where they read otherwise.
pub fn with_spread(summary: &Summary) -> String {
    let [median, least, most] = [summary.median, summary.least, summary.most].map(short);
    if least == median && most == median {
        return median;
    }
    format!("{median} <small>{least}–{most}</small>")
}

/// Numbers of the paper beside ours.
pub fn claims(page: &mut String, figure: &Drawn) {
    if figure.claims.is_empty() {
        return;
    }
    page.push_str(
        "<h3>Beside the paper's</h3>\n<div class=\"scroll\"><table><tr><th></th><th>paper</th><th>here</th>\
         <th></th></tr>\n",
    );
    for claim in &figure.claims {
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{} <small>{}</small></td><td>{}</td>{}</tr>",
            escape(&claim.what),
            escape(&claim.says),
            escape(claim.source),
            claim.ours.as_ref().map_or("–".into(), beside),
            verdict(claim)
        );
    }
    page.push_str("</table></div>\n");
}

/// What the runs gave, beside a paper's number.
pub fn beside(ours: &Ours) -> String {
    match ours {
        Ours::Value(summary) => with_spread(summary),
        Ours::Ratio { ratio, stated } => match plus_minus(*stated) {
            within if within.is_empty() => short(*ratio),
            within => format!("{} <small>{}</small>", short(*ratio), within.trim_start()),
        },
    }
}

fn verdict(claim: &DrawnClaim) -> String {
    match claim.verdict {
        Some(word @ Verdict::Differs) => {
            format!(
                "<td class=\"differs\">{}: {}</td>",
                word.word(),
                escape(claim.why)
            )
        }
        Some(word) => format!("<td class=\"verdict\">{}</td>", word.word()),
        None => "<td></td>".into(),
    }
}

/// What lies outside of the spread that another measurement stated.
pub fn outside(page: &mut String, against: &Against) {
    let _ = writeln!(
        page,
        "<h2 id=\"against\">Held against a measurement before</h2>\n<p>Each ratio beside what the measurement in \
         <code>{}</code> stated: {}.</p>",
        escape(&against.first.display().to_string()),
        escape(&against.verdict())
    );
    if against.outside().next().is_none() {
        return;
    }
    page.push_str(
        "<div class=\"scroll\"><table><tr><th>outside</th><th>ratio</th><th>before</th><th>stated</th><th>now</th></tr>\n",
    );
    for held in against.outside() {
        let _ = writeln!(
            page,
            "<tr><td><a href=\"#{id}\">{id}</a>, {}, {}</td><td>{} to {}</td><td>×{}</td><td>×{}–{}</td>\
             <td>×{}{}</td></tr>",
            escape(&held.panel),
            escape(&held.place),
            escape(&held.over),
            escape(&held.under),
            exact(held.first),
            exact(held.stated.low),
            exact(held.stated.high),
            exact(held.second),
            if held.drifted { DRIFTED } else { "" },
            id = held.figure,
        );
    }
    page.push_str("</table></div>\n");
}

/// With as many decimals as there is something to see in: what is stated of counts is narrow.
fn exact(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 0.1 => format!("{ratio:.4}"),
        ratio if ratio < 100.0 => format!("{ratio:.3}"),
        ratio => short(ratio),
    }
}

/// What came of each figure, with a link to it.
pub fn overview(page: &mut String, figures: &[Drawn]) {
    page.push_str(
        "<div class=\"scroll\"><table class=\"overview\"><tr><th>figure</th><th>agrees</th><th>differs</th>\
         <th>cannot be told</th><th>runs</th><th>drifted</th><th>failed</th></tr>\n",
    );
    for figure in figures {
        let count = |wanted| {
            let mut verdicts = figure.claims.iter().filter_map(|claim| claim.verdict);
            some(verdicts.by_ref().filter(|verdict| *verdict == wanted).count())
        };
        let _ = writeln!(
            page,
            "<tr><td><a href=\"#{}\">{}</a></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            figure.id,
            escape(figure.title),
            count(Verdict::Agrees),
            count(Verdict::Differs),
            count(Verdict::CannotBeTold),
            some(figure.calibration.runs),
            some(figure.calibration.drifted),
            some(figure.failed.len()),
        );
    }
    page.push_str("</table></div>\n");
}

/// A number, or nothing for none.
fn some(count: usize) -> String {
    match count {
        0 => String::new(),
        count => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Extremes are told where they read otherwise than what lies between them.
    #[test]
    fn spreads_are_seen() {
        let shown = |median, least, most| with_spread(&Summary { median, least, most });
        assert_eq!(shown(1.0, 1.0, 1.0), "1");
        assert_eq!(shown(1.0, 0.999, 1.001), "1");
        assert_eq!(shown(1.0, 0.98, 1.0), "1 <small>0.98–1</small>");
    }

    /// The ends of a narrow interval are told apart, and large ratios have no digits that say nothing.
    #[test]
    fn ends_are_told_apart() {
        assert_eq!([0.3488, 0.3512].map(exact), ["0.349", "0.351"]);
        assert_eq!([0.0041, 0.0047].map(exact), ["0.0041", "0.0047"]);
        assert_eq!(exact(382.45), "382");
    }

    /// A ratio has what it promises behind it, and nothing where it promises nothing.
    #[test]
    fn ratios_say_what_they_promise() {
        let ratio = |stated| beside(&Ours::Ratio { ratio: 2.0, stated });
        assert_eq!(ratio(None), "2");
        let stated = Interval { low: 1.6, high: 2.5 };
        assert_eq!(ratio(Some(stated)), "2 <small>±25%</small>");
        let wide = Interval { low: 0.5, high: 8.0 };
        assert_eq!(ratio(Some(wide)), "2 <small>±?</small>");
    }
}

//! The page: one HTML file that needs nothing else.

use super::Conditions;
use super::build::Build;
use super::draw::{Drawn, DrawnClaim, DrawnPanel};
use super::svg::{escape, short};
use crate::summary::Summary;
use std::fmt::Write;

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1160px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.7em; } h2 { margin-top: 2.6em; border-top: 1px solid #ccc; padding-top: .8em; font-size: 1.3em; }
h3 { font-size: 1em; margin: 1.4em 0 .3em; }
svg { max-width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; }
.panel { display: flex; flex-wrap: wrap; gap: 0 1.6em; align-items: center; }
.panel > * { min-width: 0; } .panel > .plot { flex: 0 1 620px; }
table { border-collapse: collapse; font-size: 13px; margin: .5em 0 1em; }
th, td { padding: 2px 10px; text-align: right; border-bottom: 1px solid #eee; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td small { color: #777; }
.paper { background: #f4f6f8; padding: .5em .8em; border-left: 4px solid #0072b2; }
p.differs, td.differs { color: #a04000; } td.differs { text-align: left; white-space: normal; min-width: 24em; }
.failed { color: #a00; }
nav { columns: 3; font-size: 14px; } nav a { display: block; }
details { margin: .6em 0; } code { font-size: 12px; }
";

/// All figures under what they were made on.
pub fn render(conditions: &Conditions, figures: &[Drawn]) -> String {
    let Conditions {
        scale,
        keys,
        machine,
        build: Build { date, commit },
        version,
    } = conditions;
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Wollemi: the papers' figures</title><style>{STYLE}</style></head><body>\n\
         <h1>The papers' figures, measured</h1>\n<p>Scale <b>{scale}</b>: {} keys. Put together on {date} at commit \
         {}, version {version}. {}.</p>\n<p>Bars and points are medians over the rounds, thin lines their extremes; \
         with one round there is no spread, and differences mean little. Persist counts do not depend on the machine; \
         times do, and in DRAM a fence costs less beside a miss than on the papers' memory.</p>\n<nav>\n",
        short(*keys as f64),
        escape(commit),
        escape(&machine.to_string()),
        scale = format!("{scale:?}").to_lowercase(),
    );
    // Writing to a string does not fail, here and below.
    for figure in figures {
        let _ = writeln!(page, "<a href=\"#{}\">{}</a>", figure.id, escape(figure.title));
    }
    page.push_str("</nav>\n");
    for figure in figures {
        section(&mut page, figure);
    }
    page.push_str("</body></html>\n");
    page
}

fn section(page: &mut String, figure: &Drawn) {
    let _ = writeln!(
        page,
        "<h2 id=\"{}\">{}</h2>\n<p class=\"paper\"><b>The paper:</b> {}</p>",
        figure.id,
        escape(figure.title),
        escape(figure.paper)
    );
    measured(page, figure);
    for panel in &figure.panels {
        if let Some(why) = panel.left_out {
            let _ = writeln!(page, "<h3>{}</h3>\n<p>{why}</p>", escape(&panel.title));
        }
        if panel.series.is_empty() {
            continue;
        }
        let _ = writeln!(
            page,
            "<h3>{} ({})</h3>\n<div class=\"panel\"><div class=\"plot\">{}</div>",
            escape(&panel.title),
            escape(panel.unit),
            panel.plot()
        );
        table(page, panel);
        page.push_str("</div>\n");
    }
    claims(page, figure);
    let _ = writeln!(page, "<p><b>Where it differs:</b> {}</p>", escape(figure.differs));
    if !figure.failed.is_empty() {
        page.push_str("<p class=\"failed\">Runs that gave nothing:</p><ul>\n");
        for (cell, why) in &figure.failed {
            let _ = writeln!(
                page,
                "<li><code>wollemi bench {}</code>: {}</li>",
                escape(cell),
                escape(why)
            );
        }
        page.push_str("</ul>\n");
    }
    page.push_str("<details><summary>Command lines</summary>\n");
    for cell in &figure.cells {
        let _ = writeln!(page, "<code>wollemi bench {}</code><br>", escape(cell));
    }
    page.push_str("</details>\n");
}

/// In how many rounds, when and at which commits.
fn measured(page: &mut String, figure: &Drawn) {
    let rounds = match figure.rounds {
        // A figure without runs says why that is where it differs.
        (_, 0) => return,
        (1, 1) => "one round".into(),
        (least, most) if least == most => format!("{least} rounds"),
        (least, most) => format!("{least} to {most} rounds"),
    };
    let builds: Vec<String> = figure
        .builds
        .iter()
        .map(|Build { commit, date }| format!("{date} at commit {}", escape(commit)))
        .collect();
    let mixed = if builds.len() > 1 {
        " class=\"differs\""
    } else {
        ""
    };
    let _ = writeln!(page, "<p{mixed}>Measured in {rounds}: {}.</p>", builds.join("; "));
}

/// The panel's numbers: a row a series, with its ratio to the first where the papers compare.
fn table(page: &mut String, panel: &DrawnPanel) {
    page.push_str("<div class=\"scroll\"><table><tr><th></th>");
    for place in &panel.places {
        let _ = write!(page, "<th>{}</th>", escape(place));
    }
    page.push_str("</tr>\n");
    let first = panel
        .series
        .first()
        .map(|one| one.values.clone())
        .unwrap_or_default();
    for (i, one) in panel.series.iter().enumerate() {
        let _ = write!(page, "<tr><td>{}</td>", escape(&one.name));
        for (value, first) in one.values.iter().zip(&first) {
            let _ = write!(
                page,
                "<td>{}</td>",
                cell(value, (i > 0).then_some(first.as_ref()).flatten())
            );
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
}

/// A ratio to less says nothing.
const LEAST_BASE: f64 = 0.01;

fn cell(value: &Option<Summary>, first: Option<&Summary>) -> String {
    let Some(Summary { median, least, most }) = *value else {
        return "–".into();
    };
    let mut text = short(median);
    if most > least {
        let _ = write!(text, " <small>{}–{}</small>", short(least), short(most));
    }
    if let Some(first) = first.filter(|first| first.median >= LEAST_BASE) {
        let _ = write!(text, " <small>×{:.2}</small>", median / first.median);
    }
    text
}

fn claims(page: &mut String, figure: &Drawn) {
    if figure.claims.is_empty() {
        return;
    }
    page.push_str(
        "<h3>Beside the paper's</h3>\n<div class=\"scroll\"><table><tr><th></th><th>paper</th><th>here</th>\
         <th></th></tr>\n",
    );
    for DrawnClaim {
        what,
        paper,
        ours,
        differs,
    } in &figure.claims
    {
        let ours = match ours {
            Some(Summary { median, least, most }) if most > least => {
                format!(
                    "{} <small>{}–{}</small>",
                    short(*median),
                    short(*least),
                    short(*most)
                )
            }
            Some(Summary { median, .. }) => short(*median),
            None => "–".into(),
        };
        let note = differs.map_or(String::new(), |why| format!("differs: {}", escape(why)));
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{ours}</td><td class=\"differs\">{note}</td></tr>",
            escape(what),
            short(*paper)
        );
    }
    page.push_str("</table></div>\n");
}

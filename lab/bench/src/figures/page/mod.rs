//! The page: one HTML file that needs nothing else; and for documents, one table of it (`summary`).

mod names;
mod summary;
mod tables;

use super::Conditions;
use super::against::Against;
use super::build::Build;
use super::draw::{Calibration, Drawn};
use super::svg::{DRIFTED, escape, short};
use std::fmt::Write;
pub use summary::summary;
use tables::{claims, outside, overview, with_spread};

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
p.differs, td.differs { color: #a04000; } td.differs, td.verdict { text-align: left; }
td.differs { white-space: normal; min-width: 24em; }
.failed { color: #a00; }
dl { font-size: 13px; display: grid; grid-template-columns: max-content 1fr; gap: .1em 1em; margin: .4em 0; }
dt { font-weight: 600; } dd { margin: 0; } table.overview td:first-child { white-space: normal; }
details { margin: .6em 0; } code { font-size: 12px; }
";

/// How to read it.
const LEGEND: &str = "<ul>
<li><b>Bars and points</b> are medians over the rounds, thin lines go from the least to the most. With one round there is no spread, \
and differences mean little.</li>
<li><b>×</b> is the ratio to the first row of its table, formed within each round.</li>
<li><b>±</b> behind a ratio: another measurement of as many rounds is to find it within this margin, in 95 of 100 cases. ±? says that \
nothing can be promised. No ± stands where the numbers never varied, and at the longest calls, of which nothing is promised.</li>
<li><b>agrees, differs, cannot be told</b>: a paper's number beside ours. A ratio agrees if ours with its ± meets what the paper's \
digits say, differs if not, and cannot be told where ours could as well be 1 or is known too little, or where it stays below what \
the paper has as its greatest (but differs where who is ahead in the paper is behind here). Counts are held against the paper's digits. Times by themselves are another machine's, and not \
judged.</li>
<li><b>†</b> (in lines, a hollow point): a miss took more than a tenth longer or shorter after a run than before it, so that the \
machine changed meanwhile.</li>
</ul>
<p>Persist counts do not depend on the machine; times do, and in DRAM a fence costs less beside a miss than on the papers' memory.</p>
";

/// All figures under what they were made on, and what holding them against another measurement gave.
pub fn render(conditions: &Conditions, figures: &[Drawn], against: Option<&Against>) -> String {
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
         {}, version {version}. {}.</p>\n{LEGEND}",
        short(*keys as f64),
        escape(commit),
        escape(&machine.hardware()),
        scale = format!("{scale:?}").to_lowercase(),
    );
    overview(&mut page, figures);
    if against.is_some() {
        page.push_str("<p><a href=\"#against\">Held against a measurement before</a></p>\n");
    }
    for figure in figures {
        section(&mut page, figure);
    }
    if let Some(against) = against {
        outside(&mut page, against);
    }
    page.push_str("</body></html>\n");
    page
}

fn section(page: &mut String, figure: &Drawn) {
    let [says, but] = match figure.ours {
        true => ["What it shows", "How it was measured"],
        false => ["The paper", "Where it differs"],
    };
    // Writing to a string does not fail, here and below.
    let _ = writeln!(
        page,
        "<h2 id=\"{}\">{}</h2>\n<p class=\"paper\"><b>{says}:</b> {}</p>",
        figure.id,
        escape(figure.title),
        escape(figure.paper)
    );
    measured(page, figure);
    calibrated(page, &figure.calibration);
    for panel in &figure.panels {
        if let Some(why) = panel.left_out {
            let _ = writeln!(page, "<h3>{}</h3>\n<p>{why}</p>", escape(&panel.title));
        }
        if panel.series.is_empty() {
            continue;
        }
        let _ = writeln!(
            page,
            "<h3>{}</h3>\n<div class=\"panel\"><div class=\"plot\">{}</div>",
            escape(&panel.title),
            panel.plot(None)
        );
        tables::numbers(page, panel);
        page.push_str("</div>\n");
    }
    claims(page, figure);
    let _ = writeln!(page, "<p><b>{but}:</b> {}</p>", escape(figure.differs));
    names::explain(page, figure);
    if !figure.failed.is_empty() {
        page.push_str("<p class=\"failed\">Runs that gave nothing:</p><ul>\n");
        for (cell, why) in &figure.failed {
            let _ = writeln!(
                page,
                "<li><code>wollemi-lab bench {}</code>: {}</li>",
                escape(cell),
                escape(why)
            );
        }
        page.push_str("</ul>\n");
    }
    page.push_str("<details><summary>Command lines</summary>\n");
    for cell in &figure.cells {
        let _ = writeln!(page, "<code>wollemi-lab bench {}</code><br>", escape(cell));
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

/// What a miss took around the runs, and in how many that changed.
fn calibrated(page: &mut String, calibration: &Calibration) {
    let Calibration {
        runs,
        calibrated,
        drifted,
        dependent_ns: Some(dependent),
        parallel_ns: Some(parallel),
    } = calibration
    else {
        if calibration.runs > 0 {
            page.push_str("<p>Not calibrated.</p>\n");
        }
        return;
    };
    let of = match calibrated == runs {
        true => format!("{runs} runs"),
        false => format!("{calibrated} calibrated of {runs} runs"),
    };
    let changed = match drifted {
        0 => format!("in none of {of} did that change by more than a tenth"),
        _ => format!("in {drifted} of {of} that changed by more than a tenth ({DRIFTED})"),
    };
    let _ = writeln!(
        page,
        "<p>A miss took {} ns, overlapped {} ns; {changed}.</p>",
        with_spread(dependent),
        with_spread(parallel)
    );
}

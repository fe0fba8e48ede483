"""The page: one self-contained HTML file; and a Markdown table of it for documents."""

import re

from against import outside, verdict
from plots import plot
from text import DRIFTED, escape, exact, plus_minus, short, with_spread

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 1040px; margin: 0 auto; padding: 0 12px 3em; }
h1 { font-size: 1.6em; line-height: 1.2; } h2 { margin-top: 2.4em; border-top: 1px solid #ccc; padding-top: .7em; font-size: 1.25em; }
h3 { font-size: 1em; margin: 1em 0 .3em; } p, dd, li { overflow-wrap: anywhere; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: .4em 2em; }
.panels > * { min-width: 0; } svg { width: 100%; max-width: 460px; height: auto; display: block; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 14px; margin: .4em 0 1em; }
th, td { padding: 3px 8px; text-align: right; border-bottom: 1px solid #eee; vertical-align: top; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 7em; }
td small { color: #666; } .words { text-align: left; white-space: normal; }
.paper { background: #f4f6f8; padding: .5em .8em; border-left: 4px solid #0072b2; }
.differs { color: #a04000; } td.differs { min-width: 15em; } .failed { color: #a00; }
details { margin: .6em 0; } summary { cursor: pointer; } code { font-size: 13px; overflow-wrap: anywhere; }
"""

STATISTICS = f"""<h2 id="statistics">How to read the numbers</h2><ul>
<li><b>Bars and points</b> are medians over the rounds; thin lines go from the least to the most. With one round there
is no spread, and differences mean little.</li>
<li><b>×</b> is the ratio to the first row of its table, formed within each round.</li>
<li><b>±</b> after a ratio: another measurement of as many rounds should find the ratio within this margin in 95 of 100
cases. ±? means that nothing can be promised. There is no ± if the numbers never varied, nor for the longest calls, of
which nothing is promised.</li>
<li><b>agrees, differs, cannot be told</b>: a paper's number beside ours. A ratio agrees if its ± interval meets the
interval of the paper's digits, and differs if not. It cannot be told if our ratio may well be 1 or is too uncertain, or
if it stays below the paper's "up to" (but it differs if the index ahead in the paper is behind here). Counts are
compared with the paper's digits. Times by themselves are another machine's, and not judged.</li>
<li><b>{DRIFTED}</b> (in lines, a hollow point): a miss took over a tenth longer or shorter after a run than before it,
so the machine changed meanwhile.</li></ul>
<p>Persist counts do not depend on the machine. Times do: on DRAM a fence costs less relative to a miss than on the
papers' memory.</p>
"""


def table(header, rows, words=()):
    """Formats a table. Cells are HTML; columns of `words` wrap."""
    cell = lambda tag, i, text: f"<{tag}{' class=words' if i in words else ''}>{text}</{tag}>"
    lines = [
        "<tr>" + "".join(cell(tag, i, text) for i, text in enumerate(row)) + "</tr>"
        for tag, of in (("th", [header]), ("td", rows))
        for row in of
    ]
    return '<div class="scroll"><table>' + "\n".join(lines) + "</table></div>\n"


def numbers(drawn):
    """Formats a row per series, with its ratio to the first if the panel compares them."""
    ratios = {(one.over, one.place): one for one in drawn.ratios}

    def number(name, place, value):
        if value is None:
            return "–"
        text = with_spread(value)
        if value["drifted"]:
            text += f'<sup title="the memory changed its pace">{DRIFTED}</sup>'
        if (name, place) in ratios:
            one = ratios[name, place]
            text += f" <small>×{short(one.ratio)} {plus_minus(one.stated())}</small>"
        return text

    rows = [
        [escape(name), *(number(name, place, value) for place, value in zip(drawn.places, values))]
        for name, values in drawn.series.items()
    ]
    return table([escape(drawn.panel.unit), *map(escape, drawn.places)], rows)


def beside(claim):
    """Formats our value beside a paper's number."""
    if claim.value:
        return with_spread(claim.value)
    if claim.ratio is None:
        return "–"
    within = plus_minus(claim.stated)
    return short(claim.ratio) + (f" <small>{within}</small>" if within else "")


def claims(drawn):
    said = lambda claim: (
        f'<span class="differs">differs: {escape(claim.why)}</span>' if claim.verdict == "differs" else claim.verdict
    )
    rows = [
        [escape(one.what), f"{escape(one.says)} <small>{escape(one.source)}</small>", beside(one), said(one)]
        for one in drawn.claims
    ]
    return "<h3>Beside the paper's numbers</h3>\n" + table(["", "paper", "here", ""], rows, {3}) if rows else ""


def names(drawn, about):
    """Explains the figure's names: its indexes, workloads and kinds of keys."""
    words = []
    for panel in drawn.panels:
        words += [*panel.series, *panel.places, *re.findall(r"[A-Za-z0-9-]+", panel.panel.title)]
    known = {index["name"]: index["about"] for index in about["indexes"]} | about["workloads"] | about["key_kinds"]
    lines = [f"<dt>{escape(name)}</dt><dd>{escape(known[name])}</dd>" for name in dict.fromkeys(words) if name in known]
    return "<details><summary>Names</summary><dl>" + "".join(lines) + "</dl></details>\n" if lines else ""


def measured(drawn):
    """States the rounds, dates, commits and cache-miss times."""
    least, most = drawn.rounds
    if not most:
        return ""
    rounds = f"{most} round{'s' if most > 1 else ''}" if least == most else f"{least} to {most} rounds"
    builds = "; ".join(f"{date} at commit {escape(commit)}" for date, commit in drawn.builds)
    mixed = ' class="differs"' if len(drawn.builds) > 1 else ""
    text = f"<p{mixed}>Measured in {rounds}: {builds}.</p>\n"
    of = drawn.calibration
    if not of["calibrated"]:
        return text + "<p>Not calibrated.</p>\n"
    dependent, parallel = with_spread(of["dependent_ns"]), with_spread(of["parallel_ns"])
    return text + (
        f"<p>A miss took {dependent} ns, overlapped {parallel} ns; in {of['drifted']} of {of['calibrated']} calibrated runs"
        f" ({of['runs']} in all) that changed by more than a tenth.</p>\n"
    )


def section(drawn, about):
    figure = drawn.figure
    says, but = ("What it shows", "How it was measured") if figure.ours else ("The paper", "Where it differs")
    parts = [f'<h2 id="{figure.id}">{escape(figure.title)}</h2>\n<p class="paper"><b>{says}:</b> {escape(figure.paper)}</p>\n']
    parts.append('<div class="panels">\n')
    for panel in drawn.panels:
        title = f"<h3>{escape(panel.panel.title)}</h3>"
        if panel.left_out:
            parts.append(f"<div>{title}<p>{panel.left_out}</p></div>\n")
        elif panel.series:
            parts.append(
                f"<div>{title}{plot(panel)}<details><summary>Numbers</summary>{numbers(panel)}</details></div>\n"
            )
    parts += ["</div>\n", claims(drawn), f"<p><b>{but}:</b> {escape(figure.differs)}</p>\n", measured(drawn)]
    parts.append(names(drawn, about))
    if drawn.failed:
        lines = (f"<li><code>{escape(cell)}</code>: {escape(why)}</li>" for cell, why in drawn.failed.items())
        parts.append(f'<p class="failed">Failed runs:</p><ul>{"".join(lines)}</ul>\n')
    lines = "<br>".join(f"<code>wollemi-lab bench {escape(cell)}</code>" for cell in drawn.cells)
    parts.append(f"<details><summary>Command lines</summary>{lines}</details>\n")
    return "".join(parts)


def overview(figures):
    """Lists the outcome of each figure, with a link to it."""
    rows = []
    for drawn in figures:
        verdicts, of = drawn.verdicts(), drawn.calibration
        counts = [*(verdicts[word] for word in ("agrees", "differs", "cannot be told")), of["runs"], of["drifted"]]
        link = f'<a href="#{drawn.figure.id}">{escape(drawn.figure.title)}</a>'
        rows.append([link, *(str(count or "") for count in [*counts, len(drawn.failed)])])
    header = ["figure", "agrees", "differs", "cannot be told", "runs", "drifted", "failed"]
    return '<h2 id="all">All figures</h2>\n' + table(header, rows)


def held(against):
    rows = [
        [f'<a href="#{id}">{id}</a>, {escape(where)}', escape(ratio), *("×" + one for one in numbers)]
        for id, where, ratio, *numbers in outside(against)
    ]
    return (
        f'<h2 id="against">Compared with an earlier measurement</h2>\n<p>Each ratio, and the interval '
        f"stated by the measurement in <code>{escape(against['first'])}</code>: {escape(verdict(against))}.</p>\n"
        + (table(["outside", "ratio", "before", "stated", "now"], rows) if rows else "")
    )


def render(conditions, figures, against):
    """Renders the page: restart and peers first, then the papers' figures, then how to read the numbers."""
    about = conditions["about"]
    build = about["machine"]["build"]
    links = [("#all", "All figures"), ("#statistics", "How to read the numbers")]
    links += [("#against", "Compared with an earlier measurement")] if against else []
    first = [drawn for drawn in figures if drawn.figure.id in ("restart", "peers")]
    others = [drawn for drawn in figures if drawn not in first]
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
            f'content="width=device-width, initial-scale=1"><title>Wollemi: figures</title><style>{STYLE}</style></head>'
            "<body>\n<h1>Restart, peers, and the papers' figures, measured</h1>\n"
            f"<p>Scale <b>{conditions['scale']}</b>: {short(conditions['keys'])} keys. Created on {build['date']} at "
            f"commit {escape(build['commit'])}, version {about['version']}. {escape(about['hardware'])}.</p>\n<p>",
            " · ".join(f'<a href="{to}">{text}</a>' for to, text in links),
            "</p>\n",
            *(section(drawn, about) for drawn in first),
            overview(figures),
            *(section(drawn, about) for drawn in others),
            held(against) if against else "",
            STATISTICS,
            "</body></html>\n",
        ]
    )


def summarize(conditions, figures):
    """Writes every number of the papers beside the measured one, figure by figure."""
    about = conditions["about"]
    build = about["machine"]["build"]
    lines = [
        "# The papers' numbers, measured",
        "",
        f"Scale {conditions['scale']}, {short(conditions['keys'])} keys, {build['date']}, commit {build['commit']}. "
        f"{about['hardware']}. The same command wrote a page with all plots; `docs/benchmarks.md` explains how "
        "to read both.",
        "",
        "| | paper | here | |",
        "|---|---|---|---|",
    ]
    for drawn in (drawn for drawn in figures if drawn.claims):
        lines.append(f"| **{escape(drawn.figure.title)}** | | | |")
        for one in drawn.claims:
            paper = f"{escape(one.says)} <small>{escape(one.source)}</small>"
            lines.append(f"| {escape(one.what)} | {paper} | {beside(one)} | {one.verdict} |")
    return "\n".join(lines) + "\n"

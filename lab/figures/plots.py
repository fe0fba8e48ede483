"""Plots as SVG, drawn by matplotlib: grouped bars, lines over labelled places, and timelines.

A plot is as wide as a phone, so that its letters are readable there; wider pages place several side by side.
"""

import io
import textwrap

import matplotlib
from matplotlib import pyplot
from matplotlib.ticker import FuncFormatter

from plan import BARS, TIMELINE
from text import DRIFTED, short

# Colours that the colour-blind can distinguish (Okabe and Ito), then others.
COLOURS = "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #5c4a72 #8a8a8a #7fb8d8 #eaae7f #7fceb9 #e5bbd2 #b8a800 #444444"
COLOURS = COLOURS.split()
# In inches, of 72 points each; letters have nine points.
WIDTH, HEIGHT = 4.0, 2.8
# If values differ by more than this factor, the small ones look alike on a scale that starts at zero.
TWO_DECADES = 100

matplotlib.use("svg")
matplotlib.rcParams.update(
    {
        "svg.hashsalt": "wollemi",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans", "sans-serif"],
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.axisbelow": True,
        "grid.color": "#dddddd",
        "legend.frameon": False,
        "legend.fontsize": 8.5,
    }
)


def plot(drawn, heading=None):
    """Draws a panel as SVG: for a page that describes it, or alone, below its figure's title."""
    panel = drawn.panel
    figure = timelines(drawn) if panel.shape == TIMELINE else plain(drawn)
    note = ""
    if heading:
        lines = textwrap.wrap(heading, 46) + textwrap.wrap(panel.title, 50)
        figure.suptitle("\n".join(lines), x=0.02, ha="left", fontsize=9.5)
        note = foot(drawn)
    if note:
        figure.text(0.02, -0.01, "\n".join(textwrap.wrap(note, 66)), fontsize=7.5, color="#666666", va="top")
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight", pad_inches=0.06, metadata={"Date": None, "Title": panel.title})
    pyplot.close(figure)
    # HTML embeds the drawing without the prolog before it.
    return text.getvalue()[text.getvalue().index("<svg") :]


def foot(drawn):
    """Explains the marks."""
    shape = drawn.panel.shape
    if shape == TIMELINE:
        return "The first round. Above, operations per second; below, the longest call of each slot."
    marks, mark = ("Bars", DRIFTED) if shape == BARS else ("Points", "Hollow")
    note = f"{marks}: medians of the rounds; thin lines: least to most."
    drifted = any(value and value["drifted"] for values in drawn.series.values() for value in values)
    return note + (f" {mark}: the memory changed its pace during a run." if drifted else "")


def plain(drawn):
    panel, places = drawn.panel, drawn.places
    bars = panel.shape == BARS
    figure, axes = pyplot.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")
    width = 0.84 / max(len(drawn.series), 1)
    values = [value for of in drawn.series.values() for value in of if value]
    least, most = min((v["least"] for v in values), default=0), max((v["most"] for v in values), default=0)
    logarithmic = not bars and 0 < least and most > least * TWO_DECADES
    for i, (name, of) in enumerate(drawn.series.items()):
        colour = COLOURS[i % len(COLOURS)]
        shift = (i - (len(drawn.series) - 1) / 2) * width if bars else 0
        known = [(place + shift, value) for place, value in enumerate(of) if value]
        x, medians = [at for at, _ in known], [value["median"] for _, value in known]
        ends = [[v["median"] - v["least"] for _, v in known], [v["most"] - v["median"] for _, v in known]]
        thin = {"ecolor": "#222222" if bars else colour, "elinewidth": 0.8}
        drifted = [(at, value) for at, value in known if value["drifted"]]
        if bars:
            axes.bar(x, medians, width, yerr=ends, color=colour, label=name, error_kw=thin)
            for at, value in drifted:
                axes.text(at, value["most"], DRIFTED, ha="center", va="bottom", fontsize=8)
        else:
            style = "--" if i >= 7 else "-"
            axes.errorbar(x, medians, ends, fmt=f"o{style}", color=colour, label=name, markersize=4, **thin)
            hollow = {"markerfacecolor": "white", "markeredgecolor": colour}
            axes.plot([at for at, _ in drifted], [v["median"] for _, v in drifted], "o", markersize=4, zorder=4, **hollow)
    crowded = max(map(len, places), default=0) * len(places) > 38
    axes.set_xticks(range(len(places)), places, rotation=30 if crowded else 0, ha="right" if crowded else "center")
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.unit + (", logarithmic" if logarithmic else ""))
    axes.set_yscale("log" if logarithmic else "linear")
    if not logarithmic:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value < 1e4 else short(value)))
    legend(figure, axes, len(drawn.series))
    return figure


def timelines(drawn):
    """Draws the rate, and below it the longest call, over time. The rate of the incomplete last slot is left out,
    unless it is the only one."""
    figure, (rates, calls) = pyplot.subplots(2, 1, figsize=(WIDTH, HEIGHT * 1.3), sharex=True, layout="constrained")
    for i, (name, timeline) in enumerate(drawn.timelines.items()):
        slot, colour = timeline["slot_ms"], COLOURS[i % len(COLOURS)]
        middles = [(place + 0.5) * slot for place in range(len(timeline["ops"]))]
        whole = max(len(middles) - 1, 1)
        rates.plot(middles[:whole], [ops / slot / 1e3 for ops in timeline["ops"][:whole]], color=colour, label=name, lw=1)
        calls.plot(middles, [us / 1e3 for us in timeline["max_us"]], color=colour, lw=1)
    rates.set_ylabel("Mops/s")
    calls.set_ylabel(drawn.panel.unit)
    calls.set_xlabel(f"{drawn.panel.x}, ms")
    for axes in (rates, calls):
        axes.set_ylim(bottom=0)
    legend(figure, rates, len(drawn.timelines))
    return figure


def legend(figure, axes, count):
    names = axes.get_legend_handles_labels()[1]
    columns = 1 if max(map(len, names), default=0) > 28 else 2 if max(map(len, names), default=0) > 14 else 4 if count > 3 else max(count, 1)
    figure.legend(loc="outside lower left", ncols=columns, handlelength=1.2, columnspacing=1)

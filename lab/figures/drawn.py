"""A figure with its runs' numbers, and the papers' numbers beside them."""

from collections import Counter
from dataclasses import dataclass, field
from statistics import median

from plan import LINES, TIMELINE
from ratios import Interval, Row, Sample, ratio, ratios
from text import short


@dataclass
class DrawnPanel:
    """A plot with its numbers: each series has a value, or None, for each place."""

    panel: object
    places: list
    series: dict
    ratios: list
    timelines: dict
    left_out: str = ""

    def json(self):
        panel = self.panel
        stated = lambda one: one.stated() and one.stated()._asdict()
        return {
            "title": panel.title,
            "x": panel.x,
            "unit": panel.unit,
            "places": self.places,
            "series": [{"name": name, "values": values} for name, values in self.series.items()],
            "ratios": [
                {name: getattr(one, name) for name in ("place", "over", "under", "ratio", "rounds", "drifted")}
                | {"stated": stated(one)}
                for one in self.ratios
            ],
            "timelines": self.timelines,
            "left_out": self.left_out,
        }


@dataclass
class DrawnClaim:
    """A paper's number beside ours: a `value`, or a `ratio` with its `stated` interval, and a verdict if there is
    something to judge."""

    what: str
    says: str
    source: str
    why: str
    value: dict | None = None
    ratio: float | None = None
    stated: Interval | None = None
    verdict: str = ""


@dataclass
class Drawn:
    figure: object
    panels: list
    claims: list
    cells: list
    # The numbers of successful rounds: of the run that has fewest, and of the one that has most.
    rounds: tuple
    builds: list
    failed: dict
    # Cache-miss times around the runs: runs, calibrated runs, runs in which the time changed, and nanoseconds.
    calibration: dict = field(default_factory=dict)

    def verdicts(self):
        return Counter(claim.verdict for claim in self.claims)

    def json(self):
        figure = self.figure
        words = {name: getattr(figure, name) for name in ("id", "title", "ours", "paper", "differs")}
        own = {name: getattr(self, name) for name in ("rounds", "builds", "failed", "calibration", "cells")}
        claims = [vars(claim) for claim in self.claims]
        return words | {"panels": [panel.json() for panel in self.panels], "claims": claims} | own


def summary(numbers):
    """Summarizes numbers; None if there are none."""
    return {"median": median(numbers), "least": min(numbers), "most": max(numbers)} if numbers else None


def paces(printed):
    """Returns the calibrations that a run printed: one per round, if the run itself has rounds."""
    pace = printed.get("pace") or []
    return pace if isinstance(pace, list) else [pace]


def picked(point, objects):
    fields = point.pick.items()
    return next((one for one in objects or [] if all(one.get(name) == wanted for name, wanted in fields)), None)


def samples(point, results):
    """Returns the point's number in each round that has one."""
    all = []
    for round, build, objects in results.of(point.cell):
        printed = picked(point, objects)
        number = printed and point.measure.of(printed)
        if number is not None:
            drifted = point.measure.kind != "count" and any(pace["drifted"] for pace in paces(printed))
            all.append(Sample(round, build["commit"], number, drifted))
    return all


def rows(panel, results, row="place", column="series"):
    """Returns a panel's numbers in rows and columns, in the order of their first use."""
    columns = dict.fromkeys(getattr(point, column) for point in panel.points)
    table = {}
    for point in panel.points:
        of = table.setdefault(getattr(point, row), Row(getattr(point, row), dict.fromkeys(columns, ())))
        of.series[getattr(point, column)] = samples(point, results)
        of.cells |= {point.cell}
    return list(table.values())


def draw_panel(panel, results):
    table = rows(panel, results)

    def value(of):
        numbers = [one.number for one in of]
        return summary(numbers) and summary(numbers) | {"drifted": sum(one.drifted for one in of)}

    series = {name: [value(row.series[name]) for row in table] for name in panel.series()}
    empty = not any(any(values) for values in series.values())
    if empty and any(point.measure.is_hardware() for point in panel.points):
        return DrawnPanel(panel, panel.places(), {}, [], {}, "left out: this machine has no hardware counters")
    timelines = {}
    for point in panel.points if panel.shape == TIMELINE else []:
        first = (picked(point, objects) for _, _, objects in results.of(point.cell))
        timeline = next((one["timeline"] for one in first if one), None)
        if timeline:
            timelines[point.series] = timeline
    of_one = ratios(table, panel.kind()) if panel.compares() else []
    return DrawnPanel(panel, panel.places(), series, of_one, timelines)


class PaperNumber:
    """A number in a paper's text, as exact as its digits: 5.0 is not 5. It is a single number, a quotient (1/2), a
    range (1..2), or the greatest of several places, which need not be ours (up to 2)."""

    def __init__(self, says):
        self.is_most = says.startswith("up to ")
        text = says.removeprefix("up to ")
        rounded = lambda digits: (
            float(digits) - 0.5 * 0.1 ** len(digits.partition(".")[2]),
            float(digits) + 0.5 * 0.1 ** len(digits.partition(".")[2]),
        )
        if "/" in text:
            over, under = text.split("/")
            self.interval = Interval(rounded(over)[0] / rounded(under)[1], rounded(over)[1] / rounded(under)[0])
            self.text = short(float(over) / float(under))
        else:
            least, _, most = text.partition("..")
            self.interval = Interval(rounded(least)[0], rounded(most or least)[1])
            self.text = says.replace("..", "–")


def judge(stated, said):
    """Judges our ratio, known within its interval, against a paper's number, known within its digits. They agree if the
    two meet, unless our ratio is too uncertain, or may well be 1 and the paper's not. A paper's "up to" is not
    contradicted by a smaller ratio, unless the series ahead in the paper is behind here: we may have fewer or other
    places."""
    paper = said.interval
    if stated is None:
        return "cannot be told"
    if said.is_most and stated.high < paper.low and (stated.high >= 1 or paper.low <= 1):
        return "cannot be told"
    if not stated.meets(paper):
        return "differs"
    if stated.half_width() > 1 or (stated.contains(1) and not paper.contains(1)):
        return "cannot be told"
    return "agrees"


def draw_claim(line, panel, results):
    """Judges a claim. The ratio of two series at a place varies as the panel's series do; that of two places of a
    series, as its places do. A count is known within the extremes of its rounds. A time by itself is not judged: the
    paper's is another machine's."""
    said, place, series = PaperNumber(line["says"]), line["at"], line["of"]
    other, other_place = line.get("to"), line.get("to_at")
    claim = DrawnClaim(f"{panel.title}, {place}: {series}", said.text, line["source"], line["why"])
    if other:
        table = rows(panel, results)
        # A paper's greatest over its places is compared with our greatest, if our places are points of a line.
        most = said.is_most and panel.shape == LINES
        of = [ratio(table, one, series, other, panel.kind()) for one in (panel.places() if most else [place])]
        ours = max((one for one in of if one), key=lambda one: one.ratio, default=None)
        claim.what = f"{panel.title}, {'most of all places' if most else place}: {series} to {other}"
    elif other_place:
        ours = ratio(rows(panel, results, "series", "place"), series, place, other_place, panel.kind())
        claim.what = f"{panel.title}, {series}: {place} to {other_place}"
    else:
        point = next((one for one in panel.points if (one.place, one.series) == (place, series)), None)
        claim.value = summary([one.number for one in samples(point, results)] if point else [])
        if claim.value and panel.kind() == "count":
            ours = Interval(claim.value["least"], claim.value["most"])
            claim.verdict = "agrees" if ours.meets(said.interval) else "differs"
        return claim
    if ours:
        claim.ratio, claim.stated = ours.ratio, ours.stated()
        claim.verdict = judge(claim.stated, said)
    return claim


def calibration(cells, results):
    runs = [objects for cell in cells for _, _, objects in results.of(cell) if objects is not None]
    around = [[pace for one in objects for pace in paces(one)] for objects in runs]
    mean = lambda name: [
        (pace["before"][name] + pace["after"][name]) / 2 for of in around for pace in of
    ]
    return {
        "runs": len(runs),
        "calibrated": sum(bool(of) for of in around),
        "drifted": sum(any(pace["drifted"] for pace in of) for of in around),
        "dependent_ns": summary(mean("dependent_ns")),
        "parallel_ns": summary(mean("parallel_ns")),
    }


def draw(figure, results):
    cells = list(dict.fromkeys(point.cell for panel in figure.panels for point in panel.points))
    counts = [sum(objects is not None for _, _, objects in results.of(cell)) for cell in cells]
    builds = sorted({(build["date"], build["commit"]) for cell in cells for _, build, _ in results.of(cell)})
    failed = {cell: results.failure(cell) for cell in cells}
    panels = [draw_panel(panel, results) for panel in figure.panels]
    claims = [
        draw_claim(line, figure.panels[line["panel"]], results)
        for line in figure.claims
        if not panels[line["panel"]].left_out
    ]
    return Drawn(
        figure,
        panels,
        claims,
        cells,
        (min(counts, default=0), max(counts, default=0)),
        builds,
        {cell: why for cell, why in failed.items() if why is not None},
        calibration(cells, results),
    )

"""Ratios between series, and within what a further measurement is to find them.

A ratio is formed within each round, whose runs follow each other closely, between runs of one program. What is stated of
it is a prediction interval: where the mean of as many rounds of another measurement lies in 95 of 100 cases.

The model: a run's logarithm is its series' at that place, and what meets all series of the place in that round, and noise
of its own. So the noise is what is left once the means of each series and of each round are taken away (analysis of
variance in two ways): of k series in r rounds (k - 1) (r - 1) degrees of freedom. A ratio is made of two runs and has
twice that variance. It is pooled over the places of a panel and for times over its series, since they share a machine
(most counts are exact, whatever others do); places whose numbers come from the same processes count their degrees once.

Another measurement differs by its own noise, and by what is the same in all rounds of one measurement (BETWEEN), which
these rounds cannot show. With the variance v of a ratio's logarithm in d degrees, n rounds here and m there, the
difference has the variance v (1/n + 1/m) + 2 BETWEEN², of which only the first part is estimated: the degrees of freedom
of the whole are Welch's and Satterthwaite's.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import NamedTuple

# Deviation of a ratio's logarithm from one measurement to another, beyond what rounds show: how memory came to be placed,
# what else is on the machine. Three rounds on a shared virtual machine gave it: each held against what the two others
# state, 1707 of 1794 ratios of times (95.2%) lie within it.
BETWEEN = 0.07
# The share of cases in which an interval is to be met.
NOMINAL = 0.95
# Numbers are shown to a hundredth; what differs by less than half a thousandth is the same.
LEAST_DEVIATION = 0.0005
# A ratio to less says nothing.
LEAST_BASE = 0.01


class Sample(NamedTuple):
    """A round's number, the program's commit, and whether the run's calibration drifted, where that matters to it."""

    round: int
    commit: str
    number: float
    drifted: bool

    def run(self):
        """A round that was interrupted and gone on with later may have runs of two programs."""
        return self.round, self.commit


class Interval(NamedTuple):
    low: float
    high: float

    def contains(self, ratio):
        return self.low <= ratio <= self.high

    def meets(self, other):
        return self.low <= other.high and other.low <= self.high

    def half_width(self):
        """How far it goes to either side, as a share."""
        return math.sqrt(self.high / self.low) - 1


@dataclass
class Row:
    """What one place of a panel compares, its series; or one series, its places. Others are set in ratio to the first."""

    place: str
    series: dict
    cells: frozenset = frozenset()


class Spread(NamedTuple):
    """How logarithms of a panel's ratios vary: from round to round, in how many degrees of freedom, and from measurement
    to measurement."""

    variance: float
    degrees: int
    between: float

    def half_width(self, rounds, further):
        """Of the interval around the mean of this many rounds for the mean of as many of another measurement."""
        within = self.variance * (1 / rounds + 1 / further)
        whole = within + 2 * self.between
        return student(int((whole / within) ** 2 * self.degrees)) * math.sqrt(whole)


@dataclass
class Ratio:
    """A series' ratio to another at a place: the geometric mean of the rounds that both have."""

    place: str
    over: str
    under: str
    ratio: float
    rounds: int
    drifted: int
    spread: Spread | None

    def interval(self, further):
        """Within which the mean of as many rounds of another measurement is to lie; None where nothing is promised."""
        if self.spread is None:
            return None
        factor = math.exp(self.spread.half_width(self.rounds, further))
        return Interval(self.ratio / factor, self.ratio * factor)

    def stated(self):
        return self.interval(self.rounds)


def student(degrees):
    """Student's t that holds NOMINAL between its negative and itself: tabulated, from five degrees of freedom on by its
    expansion around the normal distribution's (Abramowitz and Stegun, 26.7.5)."""
    table = [math.inf, 12.706, 4.303, 3.182, 2.776]
    if degrees < len(table):
        return table[degrees]
    z, n = NormalDist().inv_cdf((1 + NOMINAL) / 2), degrees
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


def noise(row):
    """The squares of what is left of a place's logarithms without the means of its series and of its rounds, of the rounds
    that all its series have, and of how many degrees of freedom; None for less than two of either."""
    series = []
    for i, samples in enumerate(row.series.values()):
        least = LEAST_BASE if i == 0 else 1e-300
        logarithms = {one.run(): math.log(one.number) for one in samples if one.number >= least}
        if logarithms:
            series.append(logarithms)
    runs = [run for run in series[0] if all(run in one for one in series)] if series else []
    degrees = (len(series) - 1) * (len(runs) - 1)
    if degrees < 1:
        return None
    own = [fmean(one[run] for run in runs) for one in series]
    left = [[one[run] - mean for one, mean in zip(series, own)] for run in runs]
    return sum((number - fmean(of)) ** 2 for of in left for number in of), degrees


def spread(rows, kind):
    """Of a panel's places; None where none has two rounds of two series, and of extremes. Counts do not depend on when
    they are made."""
    squares, all_degrees, degrees, processes = 0, 0, 0, set()
    for row in rows:
        left = noise(row) if kind != "extreme" else None
        if left is None:
            continue
        squares += left[0]
        all_degrees += left[1]
        # Without runs that are known, each place is of its own.
        if not row.cells or row.cells not in processes:
            processes.add(row.cells)
            degrees += left[1]
    if degrees == 0:
        return None
    between = BETWEEN**2 if kind == "time" else 0
    return Spread(max(2 * squares / all_degrees, LEAST_DEVIATION**2), degrees, between)


def ratio(rows, place, over, under, kind):
    """Two series of a row, which vary as all of the rows do: of counts, as these two do. None if there are no rounds that
    both have, or if it says nothing."""
    row = next((row for row in rows if row.place == place), None)
    if row is None or over not in row.series or under not in row.series:
        return None
    if kind == "count":
        pair = lambda row: {name: row.series[name] for name in (under, over) if name in row.series}
        varies = spread([Row(row.place, pair(row), row.cells) for row in rows], kind)
    else:
        varies = spread(rows, kind)
    base = {one.run(): one for one in row.series[under] if one.number >= LEAST_BASE}
    rounds = [(one, base[one.run()]) for one in row.series[over] if one.number > 0 and one.run() in base]
    if not rounds:
        return None
    mean = math.exp(fmean(math.log(one.number / other.number) for one, other in rounds))
    drifted = sum(one.drifted or other.drifted for one, other in rounds)
    return Ratio(place, over, under, mean, len(rounds), drifted, varies)


def ratios(rows, kind):
    """The ratios of a panel: of each series to the first at each place."""
    all = (
        ratio(rows, row.place, over, under, kind)
        for row in rows
        for under, *others in [list(row.series)]
        for over in others
    )
    return [one for one in all if one]

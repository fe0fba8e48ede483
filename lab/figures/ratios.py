"""Ratios between series, and the intervals in which a further measurement should find them.

A ratio is formed within each round, whose runs follow each other closely, between runs of one program. Its stated
interval is a prediction interval: it contains the mean of as many rounds of another measurement in 95 of 100 cases.

The model: the logarithm of a run is the sum of its series' mean at that place, an effect common to all series of the
place in that round, and noise. So the noise is the residual after removing the means of each series and of each round
(two-way analysis of variance): with k series in r rounds it has (k - 1) (r - 1) degrees of freedom. A ratio involves
two runs and has twice that variance. The variance is pooled over the places of a panel, and for times over its series,
since they share a machine (most counts are exact, whatever the others do); places whose numbers come from the same
processes count their degrees once.

Another measurement differs by its own noise, and by effects common to all rounds of one measurement (BETWEEN), which
these rounds cannot show. With the variance v of a ratio's logarithm in d degrees, n rounds here and m there, the
difference has the variance v (1/n + 1/m) + 2 BETWEEN², of which only the first part is estimated. The degrees of
freedom of the whole are those of Welch and Satterthwaite.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import NamedTuple

# The deviation of a ratio's logarithm between measurements, beyond what rounds show: placement of memory, other load on
# the machine. It comes from three rounds on a shared virtual machine: with it, 1707 of 1794 ratios of times (95.2%) lie
# within the interval stated by the two other rounds.
BETWEEN = 0.07
# The share of cases in which a ratio should lie within its interval.
NOMINAL = 0.95
# Numbers are shown to a hundredth, so differences below half a thousandth do not count.
MIN_DEVIATION = 0.0005
# A ratio to a smaller number is meaningless.
MIN_BASE = 0.01


class Sample(NamedTuple):
    """A round's number, the program's commit, and whether the run's calibration drifted, if the number depends on
    it."""

    round: int
    commit: str
    number: float
    drifted: bool

    def run(self):
        """Identifies the run: an interrupted round that was resumed later may have runs of two programs."""
        return self.round, self.commit


class Interval(NamedTuple):
    low: float
    high: float

    def contains(self, ratio):
        return self.low <= ratio <= self.high

    def meets(self, other):
        return self.low <= other.high and other.low <= self.high

    def half_width(self):
        """Returns the half width of the interval, as a share."""
        return math.sqrt(self.high / self.low) - 1


@dataclass
class Row:
    """The series of one place of a panel; or the places of one series. Ratios are to the first of them."""

    place: str
    series: dict
    cells: frozenset = frozenset()


class Spread(NamedTuple):
    """How the logarithms of a panel's ratios vary: the variance between rounds, its degrees of freedom, and the
    variance between measurements."""

    variance: float
    degrees: int
    between: float

    def half_width(self, rounds, further):
        """Returns the half width, in logarithms, of the interval around the mean of `rounds` rounds for the mean of
        `further` rounds of another measurement."""
        within = self.variance * (1 / rounds + 1 / further)
        whole = within + 2 * self.between
        return student(int((whole / within) ** 2 * self.degrees)) * math.sqrt(whole)


@dataclass
class Ratio:
    """A series' ratio to another at a place: the geometric mean over the rounds that both have."""

    place: str
    over: str
    under: str
    ratio: float
    rounds: int
    drifted: int
    spread: Spread | None

    def interval(self, further):
        """Returns the interval for the mean of `further` rounds of another measurement; None if nothing is promised."""
        if self.spread is None:
            return None
        factor = math.exp(self.spread.half_width(self.rounds, further))
        return Interval(self.ratio / factor, self.ratio * factor)

    def stated(self):
        return self.interval(self.rounds)


def student(degrees):
    """Returns Student's t for a two-sided interval of NOMINAL: from a table, and from five degrees of freedom by its
    expansion around the normal distribution (Abramowitz and Stegun, 26.7.5)."""
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
    """Returns the sum of squared residuals of a place's logarithms, over the rounds that all its series have, and the
    degrees of freedom; None with fewer than two series or rounds."""
    series = []
    for i, samples in enumerate(row.series.values()):
        least = MIN_BASE if i == 0 else 1e-300
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
    """Returns the spread of a panel; None if no place has two rounds of two series, and for extremes. Counts do not
    vary between measurements."""
    squares, all_degrees, degrees, processes = 0, 0, 0, set()
    for row in rows:
        left = noise(row) if kind != "extreme" else None
        if left is None:
            continue
        squares += left[0]
        all_degrees += left[1]
        # Places without known cells count separately.
        if not row.cells or row.cells not in processes:
            processes.add(row.cells)
            degrees += left[1]
    if degrees == 0:
        return None
    between = BETWEEN**2 if kind == "time" else 0
    return Spread(max(2 * squares / all_degrees, MIN_DEVIATION**2), degrees, between)


def ratio(rows, place, over, under, kind):
    """Returns the ratio of two series of a row. Its spread is that of all the rows; for counts, that of these two
    series. None if the series share no round, or if the ratio would be meaningless."""
    row = next((row for row in rows if row.place == place), None)
    if row is None or over not in row.series or under not in row.series:
        return None
    if kind == "count":
        pair = lambda row: {name: row.series[name] for name in (under, over) if name in row.series}
        varies = spread([Row(row.place, pair(row), row.cells) for row in rows], kind)
    else:
        varies = spread(rows, kind)
    base = {one.run(): one for one in row.series[under] if one.number >= MIN_BASE}
    rounds = [(one, base[one.run()]) for one in row.series[over] if one.number > 0 and one.run() in base]
    if not rounds:
        return None
    mean = math.exp(fmean(math.log(one.number / other.number) for one, other in rounds))
    drifted = sum(one.drifted or other.drifted for one, other in rounds)
    return Ratio(place, over, under, mean, len(rounds), drifted, varies)


def ratios(rows, kind):
    """Returns the ratios of a panel: of each series to the first, at each place."""
    all = (
        ratio(rows, row.place, over, under, kind)
        for row in rows
        for under, *others in [list(row.series)]
        for over in others
    )
    return [one for one in all if one]

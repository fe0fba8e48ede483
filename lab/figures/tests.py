"""Tests of the figures' script. `WOLLEMI_BENCH` names the program to run; without it, tests that run a program are
skipped."""

import json
import math
import os
import random
import shlex
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

import cells
import drawn
import ratios
from page import beside
from plan import BARS, LINES, TIMELINE, Figure, Measure, MicrosPerOp, Panel, Plan, Point, count
from plots import plot
from ratios import Interval, Row, Sample
from text import exact, plus_minus, short, with_spread

HERE = Path(__file__).parent
PROGRAM = os.environ.get("WOLLEMI_BENCH", "")
ABOUT = {
    "version": "0",
    "hardware": "a machine",
    "machine": {"cores": 64, "build": {"date": "2026-11-22", "commit": "x"}},
    "default": "roart",
    "indexes": [
        {"name": name, "about": f"about {name}", "ablation": "-" in name and name != "art-cow", "ordered": name != "clht"}
        for name in """roart part clht hot masstree bwtree wort woart art-cow dptree roart-without-inline roart-without-lc roart-without-smp
        roart-without-ec roart-without-mo roart-without-sizes dptree-linear""".split()
    ],
    "workloads": {},
    "key_kinds": {},
    "allocators": ["dcmm", "malloc"],
    "in_memory": {"u64": ["congee"], "str": ["scc"]},
    "durable": ["redb"],
}


def samples(numbers, commit="x"):
    return [Sample(i + 1, commit, number, i == 1) for i, number in enumerate(numbers)]


def row(*series, place="place", cells=frozenset()):
    return Row(place, {str(i): samples(numbers) for i, numbers in enumerate(series)}, cells)


class Text(unittest.TestCase):
    def test_numbers_are_short(self):
        for value, text in [
            (0, "0"), (3, "3"), (0.28, "0.28"), (0.016, "0.016"), (0.05, "0.05"), (1e-12, "0"), (0.0044, "0.0044"),
            (0.000123, "0.00012"), (1234.5, "1234"), (125_000, "125k"), (2.5e6, "2.5M"),
        ]:  # fmt: skip
            self.assertEqual(short(value), text)

    def test_extremes_are_told_where_they_read_otherwise(self):
        shown = lambda *three: with_spread(dict(zip(("median", "least", "most"), three)))
        self.assertEqual(shown(1, 0.999, 1.001), "1")
        self.assertEqual(shown(1, 0.98, 1), "1 <small>0.98–1</small>")
        self.assertEqual([exact(0.3488), exact(0.0041), exact(382.45)], ["0.349", "0.0041", "382"])

    def test_a_ratio_has_what_it_promises_behind_it(self):
        of = [None, Interval(1.6, 2.5), Interval(0.5, 8)]
        self.assertEqual([plus_minus(stated) for stated in of], ["", "±25%", "±?"])
        claim = drawn.DrawnClaim("", "", "", "", ratio=2, stated=of[1])
        self.assertEqual(beside(claim), "2 <small>±25%</small>")


class Ratios(unittest.TestCase):
    def test_students_t_is_as_tables_have_it(self):
        for degrees, t in [(1, 12.706), (5, 2.571), (6, 2.447), (10, 2.228), (30, 2.042), (1000, 1.962)]:
            self.assertLess(abs(ratios.student(degrees) / t - 1), 0.002)

    def test_degrees_are_counted_once(self):
        """An effect on all series of a round is no noise; the series that ratios are to counts once; and places with
        the same processes count their degrees once."""
        slower = [1, 2, 4]
        squares, degrees = ratios.noise(row(slower, [3, 6, 12], slower))
        self.assertTrue(squares < 1e-12 and degrees == 4)
        # One of three series doubles: its residuals are half of ln 2 up and down, of which the mean of the round takes
        # a third.
        doubles = lambda cells="": row([1, 2], [1, 1], [1, 1], cells=frozenset(cells))
        squares, degrees = ratios.noise(doubles())
        self.assertAlmostEqual(squares, math.log(2) ** 2 / 3)
        self.assertEqual(degrees, 2)
        same, other = (ratios.spread([doubles("a"), doubles(cell)], "time") for cell in "ab")
        self.assertEqual((same.degrees, other.degrees), (2, 4))
        self.assertEqual(same.variance, other.variance)
        self.assertIsNone(ratios.spread([row([1], [1, 2])], "time"))
        # A round that another program resumed.
        resumed = doubles()
        resumed.series["1"][1] = resumed.series["1"][1]._replace(commit="y")
        self.assertIsNone(ratios.noise(resumed))

    def test_ratios_are_of_rounds_that_both_have(self):
        of = lambda over, under, kind="time": ratios.ratio([Row("p", {"b": under, "a": over})], "p", "a", "b", kind)
        over, under = samples([8, 1]), samples([1, 1])
        self.assertAlmostEqual(of(over, under).ratio, math.sqrt(8))
        self.assertEqual((of(over, under).rounds, of(over, under).drifted), (2, 1))
        self.assertIsNone(of(over[1:], under[:1]))
        self.assertIsNone(of(over, samples([0.001])))
        self.assertAlmostEqual(of(over, [under[0], under[1]._replace(commit="y")]).ratio, 8)
        self.assertIsNone(of(samples([2]), samples([1])).stated())
        self.assertIsNone(of(over, under, "extreme").stated())

    def test_intervals_are_of_the_panels_spread(self):
        """Intervals of counts that never vary are narrow; those of times are at least as wide as measurements differ.
        Variance is pooled over the panel, more rounds narrow the interval, and counts of one pair of series do not
        affect another pair."""
        place = lambda of, i: row([1, 1], of, place=str(i))
        steady = [place([3, 3], 0), place([2, 2], 1)]
        stated = ratios.ratios(steady, "count")[0].stated()
        self.assertTrue(stated.contains(3) and not stated.contains(3.03) and not stated.contains(2.97))
        stated = ratios.ratios(steady, "time")[0].stated()
        self.assertTrue(stated.contains(3.3) and stated.contains(2.7) and not stated.contains(4))
        varying = ratios.ratios([place([3, 3.3], 0), place([2, 2], 1)], "count")
        self.assertTrue(varying[1].stated().contains(2.1))
        self.assertGreater(varying[0].interval(1).half_width(), varying[0].interval(2).half_width())
        widths = lambda kind: [
            one.stated().half_width() for one in ratios.ratios([row([1, 1], [3, 3], [3, 3.3])], kind)
        ]
        self.assertTrue(widths("count")[0] < 0.01 and widths("count")[1] > 0.3)
        self.assertAlmostEqual(*widths("time"))

    def measured(self, draw, noise):
        """Simulates two rounds of four places of five series each. A measurement's series deviate equally in all its
        rounds, and each run has noise."""
        between = ratios.BETWEEN / math.sqrt(2)
        series = lambda: (lambda own: [math.exp(own + draw.gauss(0, noise)) for _ in range(2)])(draw.gauss(0, between))
        return ratios.ratios([row(*(series() for _ in range(5)), place=str(i)) for i in range(4)], "time")

    def test_intervals_are_met_as_often_as_they_say(self):
        """Intervals are met as often as stated for measurements that follow the model, with much, little and hardly any
        noise between rounds. Intervals without the deviation between measurements are met less often. Few rounds
        underestimate the noise as often as they overestimate it: narrow intervals are met less often than wide ones."""
        draw = random.Random(1)
        for noise, most_without in [(0.15, 1), (0.05, 0.95), (0.01, 0.5)]:
            met, without = [], 0
            for _ in range(400):
                for first, second in zip(self.measured(draw, noise), self.measured(draw, noise)):
                    stated = first.stated()
                    met.append((stated.half_width(), stated.contains(second.ratio)))
                    alone = first.spread._replace(between=0).half_width(2, 2)
                    without += abs(math.log(first.ratio / second.ratio)) <= alone
            share = lambda of: sum(is_met for _, is_met in of) / len(of)
            self.assertLess(abs(share(met) - ratios.NOMINAL), 0.015, noise)
            self.assertLess(without / len(met), share(met) * most_without, noise)
            if noise == 0.15:
                met.sort()
                fifth = len(met) // 5
                self.assertLess(share(met[:fifth]), ratios.NOMINAL - 0.02)
                self.assertGreater(share(met[-fifth:]), ratios.NOMINAL + 0.02)


class Claims(unittest.TestCase):
    def test_numbers_are_as_exact_as_their_digits(self):
        for says, text, low, high in [
            ("3", "3", 2.5, 3.5),
            ("5.0", "5.0", 4.95, 5.05),
            ("2.562", "2.562", 2.5615, 2.5625),
            ("1.2/1.5", "0.80", 1.15 / 1.55, 1.25 / 1.45),
            ("1.65..2", "1.65–2", 1.645, 2.5),
            ("up to 2.19", "up to 2.19", 2.185, 2.195),
        ]:
            said = drawn.PaperNumber(says)
            self.assertEqual(said.text, text)
            self.assertAlmostEqual(said.interval.low, low)
            self.assertAlmostEqual(said.interval.high, high)

    def test_ratios_are_judged_by_what_they_promise(self):
        for says, stated, verdict in [
            ("1.3", None, "cannot be told"),
            ("1.3", Interval(1.2, 1.4), "agrees"),
            ("1.3", Interval(1.4, 1.6), "differs"),
            ("1.3", Interval(0.9, 1.4), "cannot be told"),
            ("1.3", Interval(0.2, 8), "cannot be told"),
            ("1.0", Interval(0.9, 1.4), "agrees"),
            ("up to 1.3", Interval(1.1, 1.2), "cannot be told"),
            ("up to 1.3", Interval(0.7, 0.8), "differs"),
            ("up to 1.3", Interval(1.5, 1.6), "differs"),
        ]:
            self.assertEqual(drawn.judge(stated, drawn.PaperNumber(says)), verdict, (says, stated))


def figure(shape=BARS, kinds=("time", "time"), places="xy", title="panel"):
    points = [
        Point(series, place, series + place, {}, Measure("number", kind)) for series, kind in zip("ab", kinds) for place in places
    ]
    return Figure("id", [Panel(title, shape, "x", "unit", points)], "title", "", "", claims=[])


class Drawing(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = Path(self.directory.name) / "cells.jsonl"
        self.results = cells.Results(self.path)
        self.addCleanup(self.results.file.close)

    def keep(self, cell, *numbers, after=100):
        pace = lambda ns: {"dependent_ns": ns, "parallel_ns": 10}
        for i, number in enumerate(numbers):
            end = after if i else 100
            of = {"before": pace(100), "after": pace(end), "drifted": end > 110}
            outcome = {"printed": [{"number": number, "pace": of}]}
            self.results.keep(cell, i + 1, {"date": "2026-11-22", "commit": "x"}, outcome)

    def test_what_was_kept_is_there_after_an_interruption(self):
        self.keep("a", 1, 2)
        self.results.keep("b", 1, {"date": "", "commit": "x"}, {"failed": "no"})
        whole = self.path.read_bytes()
        # An entry of the old format without a build, and a line truncated within a character.
        self.path.write_bytes(whole + b'{"cell":"c","round":1,"outcome":{"printed":[]}}\n{"cell":"\xc3')
        again = cells.Results(self.path)
        self.addCleanup(again.file.close)
        self.assertEqual([round for round, _, _ in again.of("a")], [1, 2])
        self.assertEqual([again.has("a", 1), again.has("b", 1), again.has("c", 1)], [True, False, False])
        self.assertEqual(again.failure("b"), "no")
        again.file.flush()
        self.assertTrue(self.path.read_bytes().endswith(b"\xc3\n"))

    def test_series_take_turns(self):
        """Series alternate at each place, reverse and rotate; cells that an earlier panel has run are not repeated."""
        panel = lambda runs, names: Panel(
            "", BARS, "", "", [Point(name[0], name[1], name, {}, Measure("mops")) for name in names.split()], runs
        )
        of = Figure("id", [panel(1, "a1 a2 b1 b2 c1 c2"), panel(1, "a2 c3 b2"), panel(2, "a4 b4")], "", "", "")
        names = lambda round: " ".join(f"{cell}.{own}" for cell, own in cells.order([of], round))
        self.assertEqual(names(1), "a1.1 b1.1 c1.1 a2.1 b2.1 c2.1 c3.1 a4.1 b4.1 b4.2 a4.2")
        self.assertEqual(names(2), "c1.2 b1.2 a1.2 c2.2 b2.2 a2.2 c3.2 b4.3 a4.3 a4.4 b4.4")
        self.assertEqual(names(3), "b1.3 c1.3 a1.3 b2.3 c2.3 a2.3 c3.3 a4.5 b4.5 b4.6 a4.6")

    def test_figures_say_what_was_measured_and_where_the_pace_drifted(self):
        self.keep("ax", 2, 2)
        self.keep("bx", 1, 1, after=120)
        of = drawn.draw(figure(places="x"), self.results)
        self.assertEqual((of.rounds, of.builds, of.failed), ((2, 2), [("2026-11-22", "x")], {}))
        self.assertEqual([of.calibration[name] for name in ("runs", "calibrated", "drifted")], [4, 4, 1])
        self.assertEqual(of.calibration["dependent_ns"], {"median": 100, "least": 100, "most": 110})
        [ratio] = of.panels[0].ratios
        self.assertEqual((ratio.over, ratio.under, ratio.ratio, ratio.drifted), ("b", "a", 0.5, 1))
        text = plot(of.panels[0], "title")
        self.assertTrue("†" in text and "title" in text and ">x<" in text)

    def test_bounds_are_no_ratios_and_missing_counters_are_left_out(self):
        self.keep("ax", 2, 2)
        self.assertEqual(drawn.draw(figure(kinds=("time", "count"), places="x"), self.results).panels[0].ratios, [])
        panel = figure(places="x").panels[0]
        panel.points = [replace(point, measure=count("hardware_per_op.cycles")) for point in panel.points]
        self.assertTrue(drawn.draw_panel(panel, self.results).left_out)

    def test_claims_are_of_a_value_a_ratio_or_the_greatest_of_a_line(self):
        for cell, number in {"ax": 2, "ay": 4, "bx": 1, "by": 0.5}.items():
            self.keep(cell, number, number)
        line = {"at": "x", "of": "a", "says": "4", "source": "", "why": ""}
        of = lambda shape, kind, more: drawn.draw_claim(line | more, figure(shape, (kind, kind)).panels[0], self.results)
        self.assertEqual(of(BARS, "count", {"at": "y"}).verdict, "agrees")
        self.assertEqual(of(BARS, "count", {"at": "y", "says": "3.96"}).verdict, "differs")
        self.assertEqual(of(BARS, "time", {"at": "y"}).verdict, "")
        self.assertEqual(of(BARS, "count", {"at": "z"}).verdict, "")
        most = of(LINES, "time", {"to": "b", "says": "up to 2"})
        self.assertEqual(most.what, "panel, most of all places: a to b")
        self.assertAlmostEqual(most.ratio, 8)
        self.assertAlmostEqual(of(BARS, "time", {"to": "b", "says": "up to 2"}).ratio, 2)
        between = of(LINES, "time", {"at": "y", "to_at": "x"})
        self.assertAlmostEqual(between.ratio, 2)
        self.assertEqual(between.what, "panel, a: y to x")

    def test_plots_show_every_value(self):
        """Lines over more than two decades have a logarithmic axis, and its label says so; timelines have both plots;
        text is escaped."""
        for cell, number in {"ax": 2, "ay": 4000, "bx": 1, "by": 0.5}.items():
            self.keep(cell, number, number)
        draw = lambda *how: plot(drawn.draw(figure(*how), self.results).panels[0])
        self.assertIn("unit, logarithmic", draw(LINES))
        self.assertNotIn("logarithmic", draw(BARS))
        self.assertNotIn("a<b", draw(BARS, ("time", "time"), "xy", "a<b"))
        timeline = {"slot_ms": 2, "ops": [4000, 2000, 1], "max_us": [10, 3000, 0]}
        panel = drawn.DrawnPanel(figure(TIMELINE).panels[0], [], {}, [], {"a": timeline})
        self.assertTrue(all(text in plot(panel) for text in ("Mops/s", "unit", "x, ms")))


class Plans(unittest.TestCase):
    def test_numbers_are_found_where_runs_put_them(self):
        printed = {"mops": 2, "seconds": 3, "ops": 1_000_000, "limit": {"of_chain": 0.25}, "timeline": {"max_us": [400, 30]}}
        for measure, number in [
            (Measure("mops"), 2),
            (MicrosPerOp("seconds"), 3),
            (Measure("limit.of_chain", scale=100), 25),
            (Measure("timeline.max_us", scale=1e-3), 0.4),
            (Measure("limit.nothing.at.all"), None),
        ]:
            self.assertEqual(measure.of(printed), number)

    def test_figures_are_well_formed(self):
        """Each claim names points of its panel, its source, and why ours may differ. Figures for which the paper gives
        no number begin with "Plot only". Panels that share a run have it equally often. Each reason and each figure of
        papers.toml is used."""
        for scale in ("smoke", "laptop", "paper"):
            plan = Plan(scale, ABOUT)
            figures = plan.figures()
            self.assertEqual({figure.id for figure in figures}, plan.words["figure"].keys())
            runs = {}
            for figure in figures:
                said = figure.ours or figure.claims or figure.paper.startswith("Plot only")
                self.assertTrue(said or not any(panel.points for panel in figure.panels), figure.id)
                for panel in figure.panels:
                    self.assertTrue(panel.x and panel.unit)
                    alone = len(panel.series()) < 2
                    self.assertEqual(panel.compares(), figure.id != "limit" or alone, panel.title)
                    for point in panel.points:
                        self.assertEqual(runs.setdefault(point.cell, panel.runs), panel.runs, point.cell)
                for line in figure.claims:
                    points = [(point.series, point.place) for point in figure.panels[line["panel"]].points]
                    other = line.get("to", line["of"]), line.get("to_at") or line["at"]
                    self.assertEqual((points.count((line["of"], line["at"])), points.count(other)), (1, 1), line)
                    self.assertTrue(line["source"] and len(line["why"]) > 10, line)
                    paper = drawn.PaperNumber(line["says"]).interval
                    self.assertTrue(0 < paper.low < paper.high, line)
            words = plan.words["figure"].values()
            used = {words["differs"] for words in words} | {line["why"] for of in words for line in of.get("claims", [])}
            self.assertLessEqual(plan.words["reason"].keys(), used)


@unittest.skipUnless(PROGRAM, "WOLLEMI_BENCH names no program")
class Script(unittest.TestCase):
    def run_it(self, out, only, *more):
        line = [sys.executable, HERE, "--program", PROGRAM, "--scale", "smoke", "--out", out, "--only", only, "--json", *more]
        done = subprocess.run(line, capture_output=True, text=True)
        return done, [json.loads(text) for text in done.stdout.splitlines()]

    def test_a_page_is_written_once(self):
        about = json.loads(subprocess.run([*shlex.split(PROGRAM), "about"], capture_output=True, check=True).stdout)
        peers = ["peers", "restart"] if about["durable"] else []
        ids = ",".join(["wort-7", "roart-2", "limit", "stalls", *peers])
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory)
            done, figures = self.run_it(out, ids)
            # WORT's figure 7, ROART's 20 to 22, limit, stalls, and the peers' figures if there are any.
            self.assertEqual(len(figures), 6 + len(peers), done.stderr)
            for figure in figures:
                self.assertEqual(figure["failed"], {}, figure["id"])
                for series in figure["panels"][0]["series"]:
                    self.assertTrue(all(value and value["median"] > 0 for value in series["values"]), series)
            for panel in next(figure for figure in figures if figure["id"] == "stalls")["panels"]:
                self.assertEqual(list(panel["timelines"]), ["roart", "dptree"])
            page = (out / "index.html").read_text()
            self.assertTrue("<svg" in page and "WORT Fig. 7" in page and "src=" not in page)
            self.assertTrue("A miss took" in page and "Not calibrated" not in page)
            if peers:
                self.assertLess(page.index('id="restart"'), page.index('id="peers"'))
                self.assertLess(page.index('id="peers"'), page.index('id="all"'))
            self.assertLess(page.index('id="wort-7"'), page.index('id="statistics"'))
            self.assertIn("| inserts, wort: clustered to dense | 1.5 ", (out / "summary.md").read_text())
            before = (out / "cells.jsonl").read_bytes()
            self.assertEqual(self.run_it(out, ids)[1], figures)
            self.assertEqual((out / "cells.jsonl").read_bytes(), before)
            # Compared with itself, each ratio is unchanged, once there are enough rounds to state an interval.
            *_, against = self.run_it(out, "wort-7", "--rounds", "2", "--against", out)[1]
            self.assertEqual((against["met"], against["unstated"], against["missing"]), (against["of"], 0, 0))
            self.assertTrue(against["of"] > 0 and against["of"] % 3 == 0)
            self.assertIn("nowhere/cells.jsonl", self.run_it(out, "wort-7", "--against", "nowhere")[0].stderr)
            said = self.run_it(out, "wort-7,roart-99")[0]
            self.assertTrue(said.returncode != 0 and "'roart-99" in said.stderr and "dptree-13" in said.stderr)


if __name__ == "__main__":
    unittest.main()

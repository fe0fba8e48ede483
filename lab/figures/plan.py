"""The plan: which runs of `wollemi-lab bench` (cells), and which of their numbers, make up the papers' figures and
ours.

`papers.toml` has the text of each figure and the papers' numbers. Most figures show all ordered indexes that are not
ablations, and the ablations that they are about.
"""

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from text import short

KEYS = {"smoke": 20_000, "laptop": 1_000_000, "paper": 30_000_000}
ROUNDS = {"smoke": 1, "laptop": 3, "paper": 3}
BARS, LINES, TIMELINE = "bars", "lines", "timeline"


@dataclass(frozen=True)
class Measure:
    """The number of a cell's output that a point shows: the field at this path, times `scale`.

    A `time` depends on the machine's pace, a `count` does not. An `extreme` is of the few longest calls; nothing is
    promised of its ratios.
    """

    path: str
    kind: str = "time"
    scale: float = 1

    def of(self, printed):
        number = printed
        for name in self.path.split("."):
            number = number.get(name) if isinstance(number, dict) else None
        if isinstance(number, list):
            number = max(number, default=0)
        return None if number is None else number * self.scale

    def is_hardware(self):
        return self.path.startswith("hardware_per_op")


@dataclass(frozen=True)
class MicrosPerOp(Measure):
    """Microseconds per operation, over all threads."""

    def of(self, printed):
        return printed["seconds"] * 1e6 / printed["ops"] if printed.get("ops") else None


def count(path, scale=1):
    return Measure(path, "count", scale)


MOPS = "Mops/s", Measure("mops")
MICROS = "µs per operation", MicrosPerOp("seconds")
LONGEST = Measure("timeline.max_us", "extreme", 1e-3)
CACHE_MISSES = count("hardware_per_op.cache_misses")
HARDWARE = {
    "cycles": count("hardware_per_op.cycles"),
    "instructions": count("hardware_per_op.instructions"),
    "last-level cache misses": CACHE_MISSES,
    "mispredicted branches": count("hardware_per_op.branch_misses"),
}
WRITE_BACKS, FENCES = count("write_backs_per_op"), count("fences_per_op")
BYTES = "bytes a key", count("bytes_per_key")


@dataclass(frozen=True)
class Point:
    """A series at a place; `pick` selects one of the objects that the cell prints, by fields and their values."""

    series: str
    place: str
    cell: str
    pick: dict
    measure: Measure


@dataclass
class Panel:
    """One plot. `x` and `unit` name the axes. A round runs each point `runs` times, each of which counts as a round."""

    title: str
    shape: str
    x: str
    unit: str
    points: list
    runs: int = 1

    def places(self):
        return list(dict.fromkeys(point.place for point in self.points))

    def series(self):
        return list(dict.fromkeys(point.series for point in self.points))

    def kind(self):
        kinds = {point.measure.kind for point in self.points}
        return next((kind for kind in ("extreme", "time") if kind in kinds), "count")

    def compares(self):
        """Returns whether the series are compared with each other. Bounds and what they bound are not."""
        return len({point.measure for point in self.points}) < 2


@dataclass
class Figure:
    """A figure of a paper, or one of `ours`: then `paper` states what it shows, and `differs` how it was measured."""

    id: str
    panels: list
    title: str
    paper: str
    differs: str
    ours: bool = False
    claims: list = field(default_factory=list)


class Plan:
    """All figures at one scale; `about` is the description of program and machine that `wollemi-lab bench about`
    prints."""

    def __init__(self, scale, about):
        self.scale, self.keys, self.about = scale, KEYS[scale], about
        self.cores = about["machine"]["cores"]
        self.all = [index["name"] for index in about["indexes"]]
        self.shown = [index["name"] for index in about["indexes"] if index["ordered"] and not index["ablation"]]
        self.words = tomllib.loads((Path(__file__).parent / "papers.toml").read_text())

    def figures(self):
        """Returns all figures, restart and peers first."""
        peers = [self.restart(), self.peers()] if self.about["durable"] else []
        return [*peers, self.limit(), self.open(), self.stalls(), *self.roart(), *self.recipe(), *self.wort(), *self.dptree()]

    def figure(self, id, *panels):
        words = dict(self.words["figure"][id])
        reason = lambda text: self.words["reason"].get(text, text)
        claims = []
        for line in words.pop("claims", []):
            if line.get("cores", 0) <= self.cores:
                last = panels[line["panel"]].points[-1].place if panels[line["panel"]].points else ""
                at = {name: last if line.get(name) == "last" else line.get(name) for name in ("at", "to_at")}
                claims.append(line | at | {"why": reason(line["why"])})
        return Figure(id, list(panels), **words | {"differs": reason(words["differs"]), "claims": claims})

    def threads(self, wanted):
        return min(wanted, self.cores)

    def parts(self):
        return [max(self.keys // part, 1) for part in (8, 4, 2, 1)]

    def sizes(self, more):
        return {short(keys): f"--keys {keys} {more}" for keys in self.parts()}

    def workloads(self, title, indexes, workloads, more, unit, measure):
        """A panel with a series for each index and a place for each workload; all workloads share a cell."""
        cell = lambda index: f"run --index {index} --workload {','.join(workloads)} --keys {self.keys} {more}"
        points = [
            Point(index, workload, cell(index), {"workload": workload}, measure)
            for index in indexes
            for workload in workloads
        ]
        return Panel(title, BARS, "workload", unit, points)

    def throughputs(self, title, indexes, workloads, more):
        """Panels of the throughput of workloads that share a cell; scans are in a second panel, for their different
        scale."""
        panel = self.workloads(title, indexes, workloads, more, *MOPS)
        scans = lambda point: point.place == "scan100" or point.place.endswith("-e")
        return [
            replace(panel, points=[point for point in panel.points if not scans(point)]),
            replace(panel, title=f"{title}: scans", points=[point for point in panel.points if scans(point)]),
        ]

    def over(self, title, shape, indexes, workload, places, what, x="keys"):
        """A panel of one workload over places, each with its own arguments."""
        unit, measure = what
        points = [
            Point(index, place, f"run --index {index} --workload {workload} {more}", {"workload": workload}, measure)
            for index in indexes
            for place, more in places.items()
        ]
        return Panel(title, shape, x, unit, points)

    def killed(self, series, index, keys, threads, measure):
        """A point of an opening after a kill, recovered by this many threads."""
        more = f" --recovery-threads {threads}" if threads > 1 else ""
        cell = f"open --index {index} --keys {keys} --rounds 1 --pool {{pool}}{more}"
        return Point(series, short(keys), cell, {"after": "kill"}, measure)

    def openings(self, title, path):
        points = [self.killed(index, index, keys, 1, Measure(path)) for index in self.shown for keys in self.parts()]
        return Panel(title, LINES, "keys", "ms", points)

    def by_threads(self, index, sizes, measure):
        threads = {1: "1 thread", 2: "2 threads"}
        here = {count: series for count, series in threads.items() if count <= self.cores}
        return [self.killed(series, index, keys, count, measure) for count, series in here.items() for keys in sizes]

    def recoveries(self, index, title, path):
        return Panel(title, LINES, "keys", "ms", self.by_threads(index, self.parts(), Measure(path)))

    # Figures that no paper has: an index beside its peers and beside the limits of memory, the times of opening and
    # restarting, and the stalls of merges and recovery.

    def restart(self):
        sizes = [max(self.keys // part, 1) for part in (100, 10, 1)]
        cell = lambda engine, keys: f"restart --engine {engine} --keys {keys} --rounds 1"
        measure = Measure("first_get_ms.median")
        points = [
            Point(engine, short(keys), cell(engine, keys), {"engine": engine}, measure)
            for engine in [self.about["default"], *self.about["durable"]]
            for keys in sizes
        ]
        return self.figure("restart", Panel("until the first answer", LINES, "keys", "ms", points))

    def peers(self):
        keys = self.keys
        sizes = f"--keys {keys} --str-keys {keys // 2} --durable-keys {keys // 10} --ops {keys}"
        cell = f"compare --rounds 1 {sizes}"
        panels = []
        for count, what, section, kind, names in [
            (keys, "8 random bytes, in memory", "memory", "u64", self.about["in_memory"]["u64"]),
            (keys // 2, "4 to 128 characters, in memory", "memory", "str", self.about["in_memory"]["str"]),
            (keys // 10, "8 random bytes, in files", "durable", "u64", self.about["durable"]),
            (keys // 10, "4 to 128 characters, in files", "durable", "str", self.about["durable"]),
        ]:
            record = {"record": "throughput", "section": section, "key_kind": kind}
            for more, operations in [("", ["get", "insert"]), (": scans", ["scan100"])]:
                points = [
                    Point(
                        engine, operation, cell, record | {"operation": operation, "engine": engine}, Measure("mops.median")
                    )
                    for operation in operations
                    for engine in [self.about["default"], *names]
                ]
                panels.append(Panel(f"{short(count)} keys of {what}{more}", BARS, "operation", "Mops/s", points))
        return self.figure("peers", *panels)

    def limit(self):
        """Lookups compared with their bounds, by `bench run --limit`."""
        bounds = {
            "its path's cold lines, one after the other": ("chain_ns", "of_chain"),
            "its path's cold lines, overlapped": ("overlapped_ns", "of_overlapped"),
            "one cold line, overlapped": ("one_line_ns", "of_one_line"),
        }
        lookup = {"a lookup": Measure("limit.ns_per_op")}
        what = [
            ("a lookup and its bounds", "ns", lookup | {name: Measure(f"limit.{ns}") for name, (ns, _) in bounds.items()}),
            (
                "what the bounds are of a lookup",
                "%",
                {name: Measure(f"limit.{share}", scale=100) for name, (_, share) in bounds.items()},
            ),
            (
                "lines of the pool on a lookup's path",
                "lines",
                {"all": count("limit.path.lines"), "cold": count("limit.path.cold")},
            ),
            (
                "the share of the pool that the third-level cache can hold",
                "%",
                {"cached at most": count("limit.cached", 100)},
            ),
        ]
        panels = []
        # Pools of short keys fit in a third-level cache, so they have more keys.
        for kind, keys in [("u64", max(self.keys, min(10_000_000, self.keys * 10))), ("str", self.keys)]:
            more = f"--ops {self.keys} --key-kind {kind} --no-counts --limit"
            cell = lambda index: f"run --index {index} --workload get --keys {keys} {more}"
            for title, unit, measures in what:
                points = [
                    Point(series, index, cell(index), {"workload": "get"}, measure)
                    for index in self.shown
                    for series, measure in measures.items()
                ]
                panels.append(Panel(f"{short(keys)} {kind} keys: {title}", BARS, "index", unit, points))
        return self.figure("limit", *panels)

    def open(self):
        panels = []
        for index in [self.about["default"], "dptree"]:
            for until, path, series in [
                ("the first answer", "first_get_ms", {"after kill -9": "kill", "after a clean close": "close"}),
                ("the background has reclaimed what the kill left", "recovered_ms", {"after kill -9": "kill"}),
            ]:
                cell = lambda keys: f"open --index {index} --keys {keys} --rounds 3 --pool {{pool}}"
                points = [
                    Point(name, short(keys), cell(keys), {"after": after}, Measure(path))
                    for keys in [self.keys // 100, self.keys // 10, self.keys, self.keys * 10]
                    for name, after in series.items()
                ]
                panels.append(Panel(f"{index}: until {until}", LINES, "keys", "ms", points))
        return self.figure("open", *panels)

    def stalls(self):
        # Operations due per second: a fraction of what the indexes can do, so that calls fall behind only during a
        # stall.
        rated = f"--workload insert --keys {self.keys} --rate 200000 --no-counts"
        both = [self.about["default"], "dptree"]
        inserts = [Point(i, "longest call", f"run --index {i} {rated}", {"workload": "insert"}, LONGEST) for i in both]
        calls = [replace(self.killed(i, i, self.keys, 1, LONGEST), place="longest call") for i in both]
        beside = "lookups and updates in turn, from the first answer after a kill until recovery has ended"
        return self.figure(
            "stalls",
            Panel("inserts, while DPTree merges", TIMELINE, "time", "longest call, ms", inserts),
            Panel(beside, TIMELINE, "time", "longest call, ms", calls),
        )

    def roart(self):
        """ROART: FAST 2021, §4.2 to §4.4."""
        strings = f"--key-kind str --threads {self.threads(4)} --no-counts"
        integers = f"--key-kind u64 --threads {self.threads(4)} --no-counts"
        micro = ["get", "insert", "update", "scan100", "remove"]
        # The paper's complete index comes first; the ratios of all others are to it.
        whole = "roart-without-inline"
        family = sorted((name for name in self.all if name.startswith("roart")), key=lambda name: name != whole)
        # A technique's effect is smaller than the difference between two runs, so this figure has more runs, each with
        # fewer keys.
        part, runs = (2, 4) if self.scale == "laptop" else (1, 1)
        ablated = Plan(self.scale, self.about)
        ablated.keys = self.keys // part
        title = f"one thread, {short(ablated.keys)} keys"
        ablation = ablated.throughputs(title, family, micro, "--key-kind str --no-counts")
        persists = lambda what, measure: ablated.workloads(
            f"{what} an insert and a removal", family, ["insert", "remove"], "--key-kind str", "per operation", measure
        )
        shown_and = lambda name: [one for one in self.all if one in (whole, name) or one in self.shown]
        threads = self.threads(16)
        more = f"--keys {self.keys} --key-kind str"
        lengths = {length: f"{more} --scan-length {length} --no-counts" for length in "10 50 100 200 400".split()}
        thetas = {
            theta: f"{more} --theta {theta} --threads {threads} --no-counts" for theta in "0.5 0.7 0.85 0.99".split()
        }
        latency = lambda title, path, kind="time": self.workloads(
            title,
            self.shown,
            ["roart-a"],
            f"--key-kind str --threads {threads} --no-counts",
            "µs",
            Measure(path, kind, 1e-3),
        )
        allocators = [
            Point(name, str(n), f"alloc --chunks {self.keys} --threads {n}", {"allocator": name}, Measure("mops.median"))
            for n in (1, 2, 4, 8, 16)
            if n <= self.cores
            for name in self.about["allocators"]
        ]
        reclaiming = self.by_threads("roart", [self.keys], LONGEST)
        return [
            self.figure("roart-14", *self.throughputs("operations", self.shown, micro, strings)),
            self.figure(
                "roart-15", *self.throughputs("workloads", self.shown, [f"roart-{mix}" for mix in "abcde"], strings)
            ),
            self.figure(
                "roart-16",
                *(replace(panel, runs=runs) for panel in ablation),
                persists("write-backs", WRITE_BACKS),
                persists("fences", FENCES),
            ),
            self.figure(
                "roart-17",
                self.over("scans", LINES, shown_and("roart-without-lc"), "scan100", lengths, MOPS, "keys a scan"),
            ),
            self.figure("roart-18", *self.throughputs("operations", self.shown, micro, integers)),
            self.figure(
                "roart-19",
                self.over(
                    "by exponent", LINES, self.shown, "roart-skew", thetas, MOPS, "exponent of the zipfian distribution"
                ),
            ),
            self.figure(
                "roart-table-5",
                latency("mean", "mean_ns"),
                latency("99th percentile", "p99_ns"),
                latency("99.9th percentile", "p999_ns", "extreme"),
            ),
            self.figure(
                "roart-20",
                self.over(
                    "reserved bytes a key",
                    LINES,
                    shown_and("roart-without-sizes"),
                    "load",
                    self.sizes("--key-kind str --no-counts"),
                    BYTES,
                ),
            ),
            self.figure(
                "roart-21",
                self.openings("until the first answer", "first_get_ms"),
                self.openings("until all that a crash left is reclaimed", "recovered_ms"),
                self.recoveries("roart", "until ROART has reclaimed it, by threads", "recovered_ms"),
                Panel(
                    "ROART's lookups and updates in turn while its threads reclaim",
                    TIMELINE,
                    "time",
                    "longest call, ms",
                    reclaiming,
                ),
            ),
            self.figure("roart-22", Panel("by threads", LINES, "threads", "M chunks/s", allocators)),
        ]

    def recipe(self):
        """RECIPE: SOSP 2019, §7."""
        ycsb = ["recipe-load-a", "recipe-a", "recipe-b", "recipe-c", "recipe-e"]
        more = lambda kind: f"--key-kind {kind} --threads {self.threads(16)} --no-counts"
        counts = lambda title, kind, measure, indexes=self.shown: self.workloads(
            f"{title} an insert, {'integer' if kind == 'u64' else 'string'} keys",
            indexes,
            ["load"],
            f"--key-kind {kind}",
            "per insert",
            measure,
        )
        misses = lambda title, kind, indexes=self.shown, mixes=ycsb: self.workloads(
            title, indexes, mixes, more(kind), "per operation", CACHE_MISSES
        )
        tables = [name for name in self.all if "clht" in name]
        title = "integer keys, for the tables among the indexes"
        return [
            self.figure(
                "recipe-4",
                *self.throughputs("(a) integer keys", self.shown, ycsb, more("u64")),
                *self.throughputs("(b) string keys", self.shown, ycsb, more("ycsb")),
                counts("(c) write-backs", "u64", WRITE_BACKS),
                counts("(c) fences", "u64", FENCES),
                counts("(d) write-backs", "ycsb", WRITE_BACKS),
                counts("(d) fences", "ycsb", FENCES),
                misses("(c) cache misses an operation, integer keys", "u64"),
                misses("(d) cache misses an operation, string keys", "ycsb"),
            ),
            self.figure(
                "recipe-5",
                self.workloads(title, tables, ycsb[:4], more("u64"), *MOPS),
                counts("write-backs", "u64", WRITE_BACKS, tables),
                counts("fences", "u64", FENCES, tables),
                misses("cache misses an operation, integer keys", "u64", tables, ycsb[:4]),
            ),
        ]

    def wort(self):
        """WORT: FAST 2017, §5."""
        kinds = ["dense", "sparse", "clustered"]

        def over_kinds(title, workload, more, what, keys=self.keys):
            places = {kind: f"--keys {keys} --key-kind {kind} {more}" for kind in kinds}
            return self.over(title, BARS, self.shown, workload, places, what, "kind of keys")

        def delays(kind):
            # The time of a write-back, and its name on the command line.
            latencies = {"100 ns": "dram", "300 ns": "wort-300", "500 ns": "wort-500"}
            more = f"--keys {self.keys} --key-kind {kind} --media delay --no-counts --delay"
            places = {latency: f"{more} {delay}" for latency, delay in latencies.items()}
            return self.over(f"{kind} keys", LINES, self.shown, "load", places, MICROS, "write latency")

        def scans(share):
            more = f"--scan-length {share} --ops {max(self.keys // 500, 20)} --no-counts"
            return over_kinds(f"{share} of the keys", "scan100", more, MICROS)

        # The number of keys whose tree has the same lowest nodes as that of the paper's 2^27 keys, each with 8 evenly
        # spaced keys: fewer by one or two whole levels of a byte.
        shaped = 1 << 11 if self.keys < 1 << 19 else 1 << 19
        nodes = count("persists_per_op.node.write_backs")
        return [
            self.figure("wort-7", over_kinds("inserts", "load", "--no-counts", MICROS)),
            self.figure("wort-8", *map(delays, kinds)),
            self.figure("wort-9", over_kinds("lookups", "get", "--no-counts", MICROS)),
            self.figure("wort-10", scans("0.01%"), scans("0.1%")),
            self.figure(
                "wort-table-1",
                over_kinds("(b) write-backs for nodes and leaves", "load", "", ("per insert", nodes), shaped),
                over_kinds("fences", "load", "", ("per insert", FENCES), shaped),
                over_kinds("(a) cache misses an insert", "load", "--no-counts", ("per insert", CACHE_MISSES)),
                over_kinds("(c) cache misses a lookup", "get", "--no-counts", ("per lookup", CACHE_MISSES)),
            ),
        ]

    def dptree(self):
        """DPTree: VLDB 2020, §4."""
        named = lambda *names: [name for name in self.all if name in names]
        probing = named("dptree", "dptree-linear", "dptree-fingerprints")
        thresholds = named("dptree-merge-2", "dptree", "dptree-merge-50")
        sizes = self.sizes("--no-counts")
        largest = dict(list(sizes.items())[2:])
        threads = {
            str(n): f"--keys {self.keys} --threads {n} --no-counts" for n in (1, 2, 4, 8, 16, 32) if n <= self.cores
        }
        mixes = ["insert", "read", "read-update", "scan-insert", "mixed"]
        by_threads = lambda title, mix, what: self.over(title, LINES, self.shown, mix, threads, what, "threads")
        persists = lambda title, measure, indexes=self.shown: self.workloads(
            title, indexes, ["load"], "--key-kind u64", "per insert", measure
        )
        share = lambda share: f"--keys {self.keys} --scan-length {share} --ops {max(self.keys // 500, 20)} --no-counts"
        scans = {one: share(one) for one in ("0.01%", "0.1%", "1%")}
        of = lambda purpose: count(f"persists_per_op.{purpose}.write_backs")
        return [
            self.figure(
                "dptree-8",
                self.over("(a) inserts", LINES, self.shown, "load", sizes, MICROS),
                self.over("(b) lookups", LINES, self.shown, "dptree-read", sizes, MICROS),
                self.over(
                    "(c) scans of a share of the keys", LINES, self.shown, "scan100", scans, MICROS, "share of the keys"
                ),
                self.over("space", LINES, self.shown, "load", sizes, BYTES),
            ),
            self.figure(
                "dptree-table-1",
                persists("write-backs for logs", of("log")),
                persists("write-backs for allocation", of("alloc")),
                persists("write-backs for nodes", of("node")),
                persists("write-backs in all", WRITE_BACKS),
                persists("fences", FENCES),
            ),
            self.figure(
                "dptree-10",
                self.over("lookups", BARS, probing, "get", largest, MICROS),
                self.over("lookups of absent keys", BARS, probing, "get-absent", largest, MICROS),
            ),
            self.figure(
                "dptree-threshold",
                self.workloads("operations", thresholds, ["insert", "get"], "--no-counts", *MOPS),
                persists("write-backs an insert", WRITE_BACKS, thresholds),
            ),
            self.figure("dptree-12", *(by_threads(f"dptree-{mix}", f"dptree-{mix}", MOPS) for mix in mixes)),
            self.figure(
                "dptree-table-2",
                *(
                    by_threads(f"dptree-{mix}: {name}", f"dptree-{mix}", ("per operation", measure))
                    for mix in ("read-update", "read")
                    for name, measure in HARDWARE.items()
                ),
            ),
            self.figure(
                "dptree-13",
                self.openings("until the first answer after a kill", "first_get_ms"),
                self.recoveries("dptree", "DPTree's first answer, by threads that replay", "first_get_ms"),
            ),
        ]

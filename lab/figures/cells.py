"""Runs of `wollemi-lab bench`, each a process of its own. What has been run is kept in a file, `cells.jsonl`, with its
commit and date, so that an interrupted series goes on where it was.

A cell is the command line of a run, after `bench`; `{pool}` in it is a file of the run's own.
"""

import datetime
import json
import subprocess
import sys
import time
from collections import defaultdict


class Kept:
    """The file of what has been run: of each cell, by round, with what it was run and what came of it."""

    def __init__(self, path, append=True):
        self.rounds = defaultdict(dict)
        self.file = open(path, "ab+" if append else "rb")
        self.file.seek(0)
        text = self.file.read()
        for line in text.split(b"\n"):
            try:
                entry = json.loads(line)
                self.rounds[entry["cell"]][entry["round"]] = (entry["build"], entry["outcome"])
            except (ValueError, KeyError, TypeError):
                pass  # Cut off, or of no known build: it is run again.
        if append and text and not text.endswith(b"\n"):
            self.file.write(b"\n")

    def keep(self, cell, round, build, outcome):
        entry = {"cell": cell, "round": round, "build": build, "outcome": outcome}
        self.file.write(json.dumps(entry).encode() + b"\n")
        self.file.flush()
        self.rounds[cell][round] = (build, outcome)

    def of(self, cell):
        """Rounds from the first one on, until one is missing: (round, build, objects that it printed or None)."""
        rounds, round = self.rounds.get(cell, {}), 1
        while round in rounds:
            build, outcome = rounds[round]
            yield round, build, outcome.get("printed")
            round += 1

    def failure(self, cell):
        """Why the cell failed in its first round that did."""
        outcomes = (outcome for _, outcome in self.rounds.get(cell, {}).values())
        return next((outcome["failed"] for outcome in outcomes if "failed" in outcome), None)

    def has(self, cell, round):
        """Whether it has been run. What failed is tried again."""
        return "printed" in self.rounds.get(cell, {}).get(round, (None, {}))[1]


def order(figures, round):
    """Every cell once, or as often as its panel asks, figure by figure, panel by panel and place by place, with which of
    its own rounds that is. Every second one has the cells of a place the other way round, so that what gets slower evenly
    meets all alike; then another one comes first."""
    met = set()
    for panel in (panel for figure in figures for panel in figure.panels):
        for own in range((round - 1) * panel.runs + 1, round * panel.runs + 1):
            for place in panel.places():
                cells = dict.fromkeys(point.cell for point in panel.points if point.place == place)
                here = [cell for cell in cells if (cell, own) not in met]
                if not here:
                    continue
                met.update((cell, own) for cell in here)
                first = (own - 1) // 2 % len(here)
                here = here[first:] + here[:first]
                yield from ((cell, own) for cell in (reversed(here) if own % 2 == 0 else here))


def run(program, cell, directory):
    """What a run printed, an object a line, or what it said on its standard error stream."""
    pool = directory / "figures.pool"
    pool.unlink(missing_ok=True)  # What an interrupted run has left.
    words = [str(pool) if word == "{pool}" else word for word in cell.split()]
    done = subprocess.run([*program, *words, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        return {"failed": done.stderr.strip()}
    try:
        return {"printed": [json.loads(line) for line in done.stdout.splitlines()]}
    except ValueError as error:
        return {"failed": str(error)}


def run_all(program, figures, rounds, commit, kept, directory):
    """Runs what has not been run, and says on standard error how far it is."""
    due = [
        (cell, own)
        for round in range(1, rounds + 1)
        for cell, own in order(figures, round)
        if not kept.has(cell, own)
    ]
    begin = time.monotonic()
    for done, (cell, own) in enumerate(due):
        left = (time.monotonic() - begin) / done * (len(due) - done) if done else 0
        print(f"{done + 1} of {len(due)}, {left / 60:.0f} min left: {cell} (round {own})", file=sys.stderr)
        date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        kept.keep(cell, own, {"date": date, "commit": commit}, run(program, cell, directory))

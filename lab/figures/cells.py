"""Runs `wollemi-lab bench`, each cell in a separate process. Results are stored in `cells.jsonl` with commit and date,
so that an interrupted series resumes where it stopped.

A cell is the command line of a run, after `bench`; `{pool}` in it stands for a fresh file.
"""

import datetime
import json
import subprocess
import sys
import time
from collections import defaultdict


class Results:
    """The stored results: for each cell and round, the build and the outcome."""

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
                pass  # Truncated, or without a build: the run is repeated.
        if append and text and not text.endswith(b"\n"):
            self.file.write(b"\n")

    def keep(self, cell, round, build, outcome):
        entry = {"cell": cell, "round": round, "build": build, "outcome": outcome}
        self.file.write(json.dumps(entry).encode() + b"\n")
        self.file.flush()
        self.rounds[cell][round] = (build, outcome)

    def of(self, cell):
        """Yields the rounds from the first until one is missing: (round, build, printed objects or None)."""
        rounds, round = self.rounds.get(cell, {}), 1
        while round in rounds:
            build, outcome = rounds[round]
            yield round, build, outcome.get("printed")
            round += 1

    def failure(self, cell):
        """Returns why the cell failed, in its first failed round."""
        outcomes = (outcome for _, outcome in self.rounds.get(cell, {}).values())
        return next((outcome["failed"] for outcome in outcomes if "failed" in outcome), None)

    def has(self, cell, round):
        """Returns whether the round has been run successfully. Failed runs are repeated."""
        return "printed" in self.rounds.get(cell, {}).get(round, (None, {}))[1]


def order(figures, round):
    """Yields every cell once, or as often as its panel asks, with the number of its own round: figure by figure, panel
    by panel and place by place. Every second round reverses the cells of a place, so that a steady slowdown affects all
    alike; then another cell comes first."""
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
    """Runs a cell, and returns the objects that it printed, one per line, or its error output."""
    pool = directory / "figures.pool"
    pool.unlink(missing_ok=True)  # Left by an interrupted run.
    words = [str(pool) if word == "{pool}" else word for word in cell.split()]
    done = subprocess.run([*program, *words, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        return {"failed": done.stderr.strip()}
    try:
        return {"printed": [json.loads(line) for line in done.stdout.splitlines()]}
    except ValueError as error:
        return {"failed": str(error)}


def run_all(program, figures, rounds, commit, results, directory):
    """Runs the missing runs, and reports progress on standard error."""
    due = [
        (cell, own)
        for round in range(1, rounds + 1)
        for cell, own in order(figures, round)
        if not results.has(cell, own)
    ]
    begin = time.monotonic()
    for done, (cell, own) in enumerate(due):
        left = (time.monotonic() - begin) / done * (len(due) - done) if done else 0
        print(f"{done + 1} of {len(due)}, {left / 60:.0f} min left: {cell} (round {own})", file=sys.stderr)
        date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        results.keep(cell, own, {"date": date, "commit": commit}, run(program, cell, directory))

"""Measures restart, peers and what the papers plot, for every index, and writes one page: `python3 lab/figures --help`.

I1 Every number comes from a separate process of `wollemi-lab bench`, whose command line the page shows.
I2 The runs of a round follow each other figure by figure and place by place, with indexes side by side, so that a slow
   minute affects them alike; every other round reverses them (`cells.order`). Medians and extremes are over the rounds.
   A panel may ask for several runs in each round, which then count as rounds.
I3 Results are stored in `cells.jsonl` with commit and date, and stored runs are not repeated when the command is run
   again; the page states the commits and dates of each figure.
I4 Every run is calibrated: cache-miss times before and after it are reported with its numbers, and mark them if they
   changed.
I5 A ratio states the interval in which a further run should find it (`ratios`), and a further run is compared with that
   (`against`). A paper's number is judged by it too (`drawn.judge`).
"""

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

import against
import cells
import drawn
import plan

ROOT = Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(prog="lab/figures", description="Measure what the papers plot; write one page.")
    parser.add_argument("--scale", choices=plan.KEYS, required=True, help="size of the measurement")
    parser.add_argument("--out", type=Path, help="directory of the page and all numbers; results there are reused")
    parser.add_argument("--only", default="", help="only figures whose ids have these prefixes, e.g. roart-16,wort")
    parser.add_argument("--rounds", type=int, help="rounds (default: one for smoke, otherwise three)")
    parser.add_argument("--against", type=Path, help="compare the ratios with those in another run's directory")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each figure, and for --against")
    parser.add_argument("--list", action="store_true", help="print the command lines of all runs, and run nothing")
    parser.add_argument("--cores", type=int, help="with --list: plan for a machine with this many cores")
    program = f"{ROOT / 'target/release/wollemi-lab'} bench"
    parser.add_argument("--program", default=program, help="program to run (default: target/release/wollemi-lab bench)")
    args = parser.parse_args()
    if not args.list and not args.out:
        parser.error("--out is required")
    return args


def query_about(program):
    """Asks the program to describe itself and the machine."""
    try:
        return json.loads(subprocess.run([*program, "about"], capture_output=True, check=True).stdout)
    except FileNotFoundError:
        sys.exit(f"{program[0]}: not built; run: cargo build --release -p wollemi-lab --features peers")


def pick(figures, only):
    wanted = [id for id in only.split(",") if id]
    for id in wanted:
        if not any(figure.id.startswith(id) for figure in figures):
            sys.exit(f"no figure is called '{id}...'; known figures: {', '.join(figure.id for figure in figures)}")
    return [figure for figure in figures if not wanted or any(figure.id.startswith(id) for id in wanted)]


def main():
    args = arguments()
    program = shlex.split(args.program)
    about = query_about(program)
    if args.cores:
        about["machine"]["cores"] = args.cores
    figures = pick(plan.Plan(args.scale, about).figures(), args.only)
    if args.list:
        points = (point for figure in figures for panel in figure.panels for point in panel.points)
        print("\n".join(dict.fromkeys(point.cell for point in points)))
        return
    try:
        import page
        import plots
    except ModuleNotFoundError as error:
        sys.exit(f"{error}; the plots need matplotlib: pip install matplotlib")
    first = args.against and args.against / "cells.jsonl"
    if first and not first.is_file():
        sys.exit(f"{first}: no such file; --against names a directory that an earlier run wrote")
    args.out.mkdir(parents=True, exist_ok=True)
    results = cells.Results(args.out / "cells.jsonl")
    rounds = args.rounds or plan.ROUNDS[args.scale]
    cells.run_all(program, figures, rounds, about["machine"]["build"]["commit"], results, args.out)
    all = [drawn.draw(figure, results) for figure in figures]
    before = first and cells.Results(first, append=False)
    held = before and against.hold(args.against, [drawn.draw(figure, before) for figure in figures], all)
    conditions = {"scale": args.scale, "keys": plan.KEYS[args.scale], "about": about}
    lines = [one.json() for one in all]
    files = {
        "figures.json": json.dumps({"conditions": conditions, "figures": lines}, indent=1),
        "index.html": page.render(conditions, all, held),
        "summary.md": page.summarize(conditions, all),
    }
    if held:
        files["against.json"] = json.dumps(held, indent=1)
    for one in all:
        for i, panel in enumerate(one.panels):
            if panel.series:
                files[f"{one.figure.id}-{i + 1}.svg"] = plots.plot(panel, one.figure.title)
    for name, text in files.items():
        (args.out / name).write_text(text, encoding="utf-8")
    if args.json:
        print("\n".join(json.dumps(line) for line in [*lines, *([held] if held else [])]))
        return
    if held:
        print("\n".join("  ".join(row) for row in against.outside(held)))
        print(against.verdict(held))
    failed = sum(len(one.failed) for one in all)
    print(f"{len(all)} figures, {failed} runs failed: {args.out / 'index.html'}")


if __name__ == "__main__":
    main()

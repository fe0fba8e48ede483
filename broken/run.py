#!/usr/bin/env python3
"""Applies each broken copy to a scratch tree, builds, and runs the command that must find it.

Prints a table, or JSON with --json. Exit code 0 if every copy that was run was found, 1 otherwise.
See README.md beside this file.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
WORK = ROOT / "target" / "broken"
TREE = WORK / "tree"
TARGET = WORK / "target"
ENV = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), "CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_TERM_COLOR": "never"}
# The upper bound on the run of a test, and on what `torture` takes beyond its budget, in seconds: beyond it hangs.
PATIENCE = 180


class Copy:
    """A patch, and what its header says."""

    def __init__(self, path):
        self.path, self.name = path, path.stem
        header = {}
        for line in path.read_text().splitlines():
            if line.startswith(("diff ", "--- ")):
                break
            key, colon, value = line.partition(":")
            if colon:
                header[key.strip()] = value.strip()
        if "What" not in header or "Found-by" not in header:
            sys.exit(f"{path.name}: its header needs What: and Found-by:")
        self.what = header["What"]
        self.command = Command(header["Found-by"])
        self.because = header.get("Because")
        self.missed_by = header.get("Missed-by")
        self.seen = header.get("Seen")

    def is_quick(self):
        """Whether it is found again after a few histories within seconds, or by a test."""
        histories = re.search(r"(\d+) histories", self.seen or "")
        seconds = re.search(r"([\d.]+) s\b", self.seen or "")
        few = histories and int(histories[1]) <= 20 and not (seconds and float(seconds[1]) > 5)
        return bool(self.seen and (few or self.command.tool == "test"))

    def apply(self, *options):
        """Applies the patch; what git said if it does not apply."""
        done = subprocess.run(["git", "apply", *options, str(self.path)], cwd=ROOT, capture_output=True, text=True)
        return done.stderr.strip() if done.returncode else None


class Command:
    """`torture ARGUMENTS` or `test ARGUMENTS OF CARGO TEST`."""

    def __init__(self, text):
        self.text = text
        self.tool, *self.arguments = shlex.split(text)
        if self.tool not in ("torture", "test"):
            sys.exit(f"Found-by: {text}: neither torture nor test")

    def is_listed(self):
        """Whether it is of the database, and not of an index, the heap or the log alone."""
        return any(word.startswith(("kv", "items", "disk")) for word in self.arguments)

    def is_light(self):
        """Whether it is built without the indexes' list and the database."""
        if self.tool == "torture":
            return not self.is_listed() and "60s" in self.arguments
        return self.arguments[:2] in (["-p", "wollemi-heap"], ["-p", "wollemi-pmem"])

    def has_tests(self):
        """Whether the sources have a test, or a module of tests, of the name that the command asks for."""
        behind = [""] + self.arguments
        names = [word for last, word in zip(behind, behind[1:]) if last not in ("-p", "--test") and word[0] != "-"]
        if self.tool != "test" or not names:
            return True
        package = self.arguments[self.arguments.index("-p") + 1]
        head = f'[package]\nname = "{package}"\n'
        manifest = next(path for path in ROOT.glob("*/*/Cargo.toml") if path.read_text().startswith(head))
        part = names[-1].split("::")[-1]
        known = re.compile(rf"\bfn +\w*{part}|\bmod +\w*{part}\w* *\{{")
        for file in manifest.parent.rglob("*.rs"):
            text = file.read_text()
            if known.search(text) or (part in file.stem and "#[test]" in text):
                return True
        # Those of the conformance suite are made by macros.
        return any(part in file.read_text() for file in ROOT.glob("crates/index/src/conformance/**/*.rs"))

    def build(self):
        """Builds what the command runs; the compiler's last lines if that fails."""
        if self.tool == "test":
            words = ["test", *self.arguments, "--no-run"]
        else:
            feature = "items" if "items" in self.arguments else "listed"
            listed = ["--features", feature] if self.is_listed() else []
            words = ["build", "-p", "wollemi-torture", "--no-default-features", "--example", "light", *listed]
        done = subprocess.run(["cargo", *words, "-q"], cwd=TREE, env=ENV, capture_output=True, text=True)
        return done.stderr[-2000:] if done.returncode else None

    def run(self, budget):
        """Runs it: whether something was found, by what, and how much was explored."""
        seconds = PATIENCE
        if self.tool == "test":
            words = ["cargo", "test", "-q", *self.arguments]
        else:
            arguments = list(self.arguments)
            if budget and "--budget" in arguments:
                arguments[arguments.index("--budget") + 1] = budget
            words = [str(TARGET / "debug" / "examples" / "light"), *arguments]
            if "--budget" in arguments:
                seconds += int(arguments[arguments.index("--budget") + 1].rstrip("s"))
        started = time.monotonic()
        process = subprocess.Popen(
            words, cwd=TREE, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            # The sound tree's run ends long before.
            return Outcome("found", "it hangs", time.monotonic() - started)
        return Outcome.read(self, process.returncode, output, time.monotonic() - started)


class Outcome:
    """What a run came to: `found`, `not found`, or why it says nothing."""

    def __init__(self, result, by, seconds, histories=None, states=None, output=""):
        self.result, self.by, self.seconds = result, by, seconds
        self.histories, self.states, self.output = histories, states, output

    @staticmethod
    def read(command, code, output, seconds):
        if command.tool == "test":
            if not any(int(count) for count in re.findall(r"^running (\d+) test", output, re.M)):
                return Outcome("no test", None, seconds, output=output)
            failed = re.findall(r"^    (\S+)$", output, re.M)
            by = failed[-1] if failed else "a test that died"
            return Outcome("found" if code else "not found", by if code else None, seconds, output=output)
        last = re.search(r"(\d+) histories, (\d+) states$", output.rstrip())
        histories, states = (int(last[1]), int(last[2])) if last else (None, None)
        if code == 0 and last:
            return Outcome("not found", None, seconds, histories, states, output)
        if code == 1 and last:
            by = output.splitlines()[0]
            return Outcome("found", by, seconds, histories, states, output)
        if code < 0 or code == 101:
            return Outcome("found", f"torture itself died (exit code {code})", seconds, output=output)
        return Outcome(f"torture failed: {output[-500:]}", None, seconds, output=output)


def sync():
    """Makes the scratch tree equal to the files of this one; touches nothing that is equal already."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    names = {name for name in os.fsdecode(listed.stdout).split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        source, copy = ROOT / name, TREE / name
        content = source.read_bytes()
        if not copy.is_file() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
            shutil.copymode(source, copy)
    for copy in list(TREE.rglob("*")):
        if copy.is_file() and str(copy.relative_to(TREE)) not in names:
            copy.unlink()


def check(copies):
    """Whether all patches apply to the tree as it is, and the tests that must find them are there, for a reason."""
    failed = 0
    for copy in copies:
        error = copy.apply("--check")
        if error:
            failed += 1
            print(f"{copy.name} does not apply:\n{error}")
        elif not copy.command.has_tests():
            failed += 1
            print(f"{copy.name}: no test is called as in: {copy.command.text}")
        elif copy.command.tool == "test" and not copy.because:
            failed += 1
            print(f"{copy.name}: left to a test, its header needs Because: why torture need not find it")
    print(f"{len(copies) - failed} of {len(copies)} broken copies apply, and have their tests and reasons")
    return failed == 0


def try_copy(copy, budget):
    """Applies, builds and runs one."""
    sync()
    error = copy.apply(f"--directory={TREE.relative_to(ROOT)}")
    if error:
        return Outcome("does not apply", None, 0.0, output=error)
    started = time.monotonic()
    error = copy.command.build()
    built = time.monotonic() - started
    if error:
        outcome = Outcome("does not build", None, 0.0, output=error)
    else:
        outcome = copy.command.run(budget)
    outcome.built = built
    return outcome


def control(copies, budget):
    """Runs each distinct command on the tree as it is: none may find anything."""
    sync()
    good = True
    for text in sorted({copy.command.text for copy in copies}):
        command = Command(text)
        error = command.build()
        outcome = Outcome("does not build", None, 0.0, output=error) if error else command.run(budget)
        passed = outcome.result == "not found"
        good &= passed
        print(f"control: {text}: {'passes' if passed else outcome.result + chr(10) + outcome.output}", flush=True)
    return good


def table(copies):
    """Prints what the headers say, in Markdown."""
    print("| copy | what must find it | seen | why a test |\n|---|---|---|---|")
    for copy in copies:
        by = copy.command.text.replace("--index ", "").replace("--threads ", "threads ").replace(" --budget 60s", "")
        seen = (copy.seen or "").partition(", ")[2] or (
            f"**not found**: {copy.missed_by}" if copy.missed_by else "not run yet"
        )
        because = f" {copy.because}" if copy.because else ""
        print(f"| {copy.name} | `{by}` | {seen} |{because} |")
    found = sum(bool(copy.seen) for copy in copies)
    print(f"\n{found} of {len(copies)} have been found.")


def row(copy, outcome):
    number = lambda value: "-" if value is None else f"{value:,}"
    result = {"found": outcome.by, "not found": "NOT FOUND"}.get(outcome.result, outcome.result.upper())
    return f"{copy.name:<34} {number(outcome.histories):>9} {number(outcome.states):>11} {outcome.seconds:>8.1f}  {result}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only see whether all patches apply; builds nothing")
    parser.add_argument("--table", action="store_true", help="only print what the headers say was seen, in Markdown")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these copies")
    parser.add_argument("--sample", type=int, metavar="N", help="N of those that are built and found quickly, others each day")
    parser.add_argument("--of", nargs="+", metavar="PREFIX", help="with --sample: of names that begin with one of these, however long they build")
    parser.add_argument("--seed", type=int, help="what the sample depends on [default: the day]")
    parser.add_argument("--budget", metavar="TIME", help="instead of each torture's own budget, such as 20s")
    parser.add_argument("--control", action="store_true", help="also run each command on the tree as it is")
    parser.add_argument("--json", action="store_true", help="one object a line for each copy")
    args = parser.parse_args()
    if args.of and not args.sample:
        parser.error("--of needs --sample")

    copies = [Copy(path) for path in sorted(HERE.glob("*.patch"))]
    if args.only:
        unknown = set(args.only) - {copy.name for copy in copies}
        if unknown:
            sys.exit(f"no broken copy is called {', '.join(sorted(unknown))}")
        copies = [copy for copy in copies if copy.name in args.only]
    if args.check:
        sys.exit(0 if check(copies) else 1)
    if args.table:
        table(copies)
        sys.exit(0)
    if args.sample:
        seed = datetime.date.today().toordinal() if args.seed is None else args.seed
        if args.of:
            copies = [copy for copy in copies if copy.name.startswith(tuple(args.of))]
        else:
            copies = [copy for copy in copies if copy.command.is_light()]
        pool = [copy for copy in copies if copy.is_quick()]
        if not pool:
            sys.exit("no broken copy of these names is found quickly")
        copies = random.Random(seed).sample(pool, min(args.sample, len(pool)))
        print(f"a sample by --seed {seed}", file=sys.stderr)

    good = True
    if not args.json:
        print(f"{'copy':<34} {'histories':>9} {'states':>11} {'seconds':>8}  found by", flush=True)
    for copy in copies:
        outcome = try_copy(copy, args.budget)
        good &= outcome.result == "found"
        if args.json:
            fields = {
                "copy": copy.name, "what": copy.what, "command": copy.command.text, "result": outcome.result,
                "found_by": outcome.by, "histories": outcome.histories, "states": outcome.states,
                "seconds": round(outcome.seconds, 1), "build_seconds": round(getattr(outcome, "built", 0.0), 1),
                "missed_by": copy.missed_by, "because": copy.because,
            }
            print(json.dumps(fields), flush=True)
        else:
            print(row(copy, outcome), flush=True)
            if outcome.result not in ("found", "not found"):
                print(outcome.output, flush=True)
            if outcome.result == "not found" and copy.missed_by:
                print(f"{'':<34} known: {copy.missed_by}", flush=True)
    if args.control:
        good &= control(copies, args.budget)
    sync()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Follows README.md as a new user does: types its shell blocks, line by line, and checks the output.

    contrib/walk.py                     # once, with target/release/wollemi
    contrib/walk.py --times 10
    contrib/walk.py --check             # do all checked lines still exist? Runs nothing

Each walk has a new directory, with `target` and `examples` as in a checkout, and one shell for all blocks. Blocks that
build, test or torture (cargo, ./test.sh) are skipped. The servers listen on memcached's and Redis's ports, as typed.
Exit code 0 if every walk has succeeded, 1 if one has failed or the README lacks a checked line, 2 if one cannot begin.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PORTS = (11211, 6379)
# Upper bound on a walk, in seconds; beyond it the walk counts as hung.
PATIENCE = 600

# The expected output of lines, found by their beginnings. Each must exist, so that a change of the README is noticed.
EXPECTED = [
    ("redis-cli set greeting hello", r"^OK$"),
    ("redis-cli get greeting", r'^"?hello"?$'),
    ("target/release/wollemi serve & sleep 1    # pool", r"pool \./wollemi\.pool, level process, 1 entry, opened in"),
    ("wollemi get greeting", r"^hello$"),
    ("wollemi scan --prefix gr", r"greeting"),
    ("wollemi check", r"clean"),
    ("wollemi scan --prefix /usr/share/doc/", r"^/usr/share/doc/"),
    ("wollemi get /usr/bin/env", r"^\d+$"),
    ("wollemi stats --count", r"default"),
    ("/tmp/client/bin/python examples/corpus.py verify", r"\d"),
    ("wollemi check --pool corpus.pool", r"clean"),
]
# Lines that end with the exit status of a killed process.
KILLS = re.compile(r"kill -9|wait$")


def blocks():
    """Returns the shell blocks to run, each a list of lines."""
    text = (ROOT / "README.md").read_text()
    found = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    left_out = re.compile(r"^(\S+=\S+ )*(cargo|\./test\.sh)\b", re.M)
    return [block.splitlines() for block in found if not left_out.search(block)]


def expected(line):
    """Returns a line's expected output, by the longest matching beginning."""
    fitting = [(begin, what) for begin, what in EXPECTED if line.startswith(begin)]
    return max(fitting, key=lambda fits: len(fits[0]), default=(None, None))[1]


def check(walked):
    """Reports the lines of EXPECTED that the README no longer has."""
    lines = [line for block in walked for line in block]
    gone = [begin for begin, _ in EXPECTED if not any(line.startswith(begin) for line in lines)]
    for begin in gone:
        print(f"README.md has no line that begins with: {begin}")
    return not gone


def script(lines):
    """Returns a script that runs the lines, and prints each one's number before it and its exit code after it."""
    typed = [f"printf '\\n@@ %d\\n' {n}\n{line}\nprintf '\\n@= %d\\n' $?" for n, line in enumerate(lines)]
    return "set -u\n" + "\n".join(typed) + "\n"


def walk(program, lines):
    """Walks once; returns the failures."""
    with tempfile.TemporaryDirectory(prefix="wollemi-walk-") as folder:
        place = pathlib.Path(folder)
        (place / "target/release").mkdir(parents=True)
        (place / "target/release/wollemi").symlink_to(program)
        (place / "examples").symlink_to(ROOT / "examples")
        shutil.rmtree("/tmp/client", ignore_errors=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WOLLEMI_")}
        shell = subprocess.Popen(
            ["bash", "-c", script(lines)],
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = shell.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            output = None
        finally:
            # Processes that a failed walk has left behind.
            try:
                os.killpg(shell.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            shutil.rmtree("/tmp/client", ignore_errors=True)
        if output is None:
            return [f"it has not ended within {PATIENCE} s"]
        return judge(lines, output)


def judge(lines, output):
    """Returns the differences from the expected output."""
    wrong = []
    parts = re.split(r"^@@ (\d+)$", output, flags=re.M)
    written = {int(n): text for n, text in zip(parts[1::2], parts[2::2])}
    for n, line in enumerate(lines):
        text = written.get(n)
        if text is None:
            wrong.append(f"not reached: {line}")
            continue
        said, _, code = text.partition("\n@= ")
        if code.split()[:1] != ["0"] and not KILLS.search(line.split("#")[0].strip()):
            wrong.append(f"exit code {code.split()[:1]}: {line}\n{said.strip()}")
        # A background server's output arrives while later lines are typed.
        heard = output if line.rstrip().split("#")[0].strip().endswith("&") else said
        if (what := expected(line)) and not re.search(what, heard, re.M):
            wrong.append(f"not written: {what}\nby: {line}\nbut: {said.strip()}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="check that the README has the expected lines; run nothing")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/release/wollemi")
    options = parser.parse_args()
    walked = blocks()
    if not check(walked):
        return 1
    if options.check:
        return 0
    if not options.program.exists():
        print(f"{options.program}: missing; build it by cargo build --release")
        return 2
    lines = [line for block in walked for line in block]
    succeeded = 0
    for turn in range(1, options.times + 1):
        for port in PORTS:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError as error:
                    print(f"port {port}: {error}")
                    return 2
        begun = time.monotonic()
        wrong = walk(options.program.resolve(), lines)
        succeeded += not wrong
        print(f"walk {turn}: {'failed' if wrong else 'succeeded'} after {time.monotonic() - begun:.0f} s", flush=True)
        for what in wrong:
            print("  " + what.replace("\n", "\n  "), flush=True)
    print(f"{succeeded} of {options.times} succeeded")
    return 0 if succeeded == options.times else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Measures how long a killed server takes from its restart to its first answer, with `--keys` keys in the pool.

    python3 contrib/first_answer.py target/release/wollemi --keys 10000000 --rounds 5

Starts `PROGRAM serve` on a new pool, stores the keys (16 bytes, with values of 32) over memcached's protocol, kills the
server with SIGKILL during writes, restarts it, connects as soon as the server listens, and requests one key. Needs only
Python's standard library. Uses only loopback and a directory that is removed afterwards.
"""

import argparse
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PIPELINE = 1000


def key(number):
    return b"key:%012d" % number


def value(number):
    return b"%032d" % (number * 2654435761 % 10**32)


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


def start(program, pool, port):
    command = [program, "serve", "--pool", pool, "--memcached", f"127.0.0.1:{port}", "--no-redis"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def connect(server, port):
    """Returns a connection, as soon as the server listens."""
    while server.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.0002)
    sys.exit(f"the server has ended with {server.returncode}")


def first_get(server, port, number):
    """Requests one key, and checks the answer."""
    expected = b"VALUE %s 0 32\r\n%s\r\nEND\r\n" % (key(number), value(number))
    with connect(server, port) as client:
        client.sendall(b"get %s\r\n" % key(number))
        answer = b""
        while len(answer) < len(expected):
            some = client.recv(65536)
            if not some:
                break
            answer += some
    if answer != expected:
        sys.exit(f"key {number} is answered with {answer!r}")


def store(server, port, numbers):
    """Stores keys; all are acknowledged when this returns."""
    stored = b"STORED\r\n" * PIPELINE
    with connect(server, port) as client:
        answers = client.makefile("rb")
        for begin in range(0, len(numbers), PIPELINE):
            some = numbers[begin : begin + PIPELINE]
            client.sendall(b"".join(b"set %s 0 0 32\r\n%s\r\n" % (key(n), value(n)) for n in some))
            if answers.read(8 * len(some)) != stored[: 8 * len(some)]:
                sys.exit("a set was refused")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the wollemi to start")
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", help="directory for the pool [default: the system's temporary directory]")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir) as directory:
        pool = os.path.join(directory, "pool")
        port = free_port()
        server = start(args.program, pool, port)
        try:
            store(server, port, range(args.keys))
            took = []
            for _ in range(args.rounds):
                # Killed during writes: the last requests are never answered.
                with connect(server, port) as client:
                    client.sendall(b"".join(b"set %s 0 0 32\r\n%s\r\n" % (key(n), value(n)) for n in range(5000)))
                    server.send_signal(signal.SIGKILL)
                server.wait()
                port = free_port()
                begin = time.monotonic()
                server = start(args.program, pool, port)
                first_get(server, port, random.randrange(args.keys))
                took.append((time.monotonic() - begin) * 1e3)
            each = ", ".join(f"{ms:.1f}" for ms in took)
            print(f"{args.keys} keys: first answer {statistics.median(took):.1f} ms after the start (each: {each})")
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()

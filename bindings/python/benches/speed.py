#!/usr/bin/env python3
"""Measures the speed of the binding and of other Python stores that are installed: lmdb, rocksdict, sqlite3, diskcache.

    pip install lmdb rocksdict diskcache
    python benches/speed.py --keys 100000 --rounds 3 --dir /dev/shm

One thread, keys of 16 random bytes, values of 100 bytes, in a random order that is the same for all. Each write is a
separate change. In each round every store runs once, in turn. The results are medians over the rounds, in thousands of
operations per second, with their range. No store waits for the disk (Wollemi's level is "process", lmdb has sync off,
sqlite3 has synchronous=off, RocksDB its default). What each survives then differs; Wollemi's writes survive kill -9.
"""

import argparse
import contextlib
import datetime
import os
import platform
import random
import shutil
import sqlite3
import statistics
import tempfile
import time

import wollemi


@contextlib.contextmanager
def run_wollemi(path):
    with wollemi.open(path) as db:
        m = db.map("m")
        yield m.__setitem__, m.__getitem__, lambda: sum(1 for _ in m.items())


@contextlib.contextmanager
def run_lmdb(path):
    import lmdb

    env = lmdb.open(path, map_size=4 << 30, sync=False)

    def put(key, value):
        with env.begin(write=True) as tx:
            tx.put(key, value)

    def get(key):
        with env.begin(buffers=False) as tx:
            return tx.get(key)

    def scan():
        with env.begin() as tx:
            return sum(1 for _ in tx.cursor())

    yield put, get, scan
    env.close()


@contextlib.contextmanager
def run_rocksdict(path):
    import rocksdict

    db = rocksdict.Rdict(path, rocksdict.Options(raw_mode=True))
    yield db.__setitem__, db.__getitem__, lambda: sum(1 for _ in db.items())
    db.close()


@contextlib.contextmanager
def run_sqlite3(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma journal_mode=wal")
    db.execute("pragma synchronous=off")
    db.execute("create table m (k blob primary key, v blob) without rowid")

    def put(key, value):
        db.execute("insert into m values (?, ?) on conflict (k) do update set v = excluded.v", (key, value))

    def get(key):
        return db.execute("select v from m where k = ?", (key,)).fetchone()[0]

    yield put, get, lambda: sum(1 for _ in db.execute("select k, v from m order by k"))
    db.close()


@contextlib.contextmanager
def run_diskcache(path):
    import diskcache

    cache = diskcache.Cache(path, eviction_policy="none")
    yield cache.__setitem__, cache.__getitem__, lambda: sum(1 for key in cache.iterkeys() if cache[key])
    cache.close()


STORES = {
    "wollemi": run_wollemi,
    "lmdb": run_lmdb,
    "rocksdict": run_rocksdict,
    "sqlite3": run_sqlite3,
    "diskcache": run_diskcache,
}


def timed(count, work):
    begin = time.perf_counter()
    work()
    return count / (time.perf_counter() - begin) / 1000


def measure(store, folder, keys, shuffled):
    path = os.path.join(folder, store)
    value = bytes(100)
    with STORES[store](path) as (put, get, scan):
        puts = timed(len(keys), lambda: [put(key, value) for key in keys])
        gets = timed(len(keys), lambda: [get(key) for key in shuffled])
        seen = []
        scans = timed(len(keys), lambda: seen.append(scan()))
        if seen != [len(keys)]:
            raise SystemExit(f"{store}: scanned {seen[0]} of {len(keys)} entries")
    return puts, gets, scans


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", default=None, help="directory for the stores' files")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    keys = [rng.randbytes(16) for _ in range(options.keys)]
    shuffled = keys[:]
    rng.shuffle(shuffled)
    results, absent = {}, {}
    for _ in range(options.rounds):
        for store in STORES:
            if store in absent:
                continue
            folder = tempfile.mkdtemp(dir=options.dir)
            try:
                results.setdefault(store, []).append(measure(store, folder, keys, shuffled))
            except ImportError as error:
                absent[store] = error
            finally:
                shutil.rmtree(folder)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {datetime.date.today()}")
    print(f"{options.keys} keys, {options.rounds} rounds; thousands of operations per second, median (min to max)")
    print(f"{'store':<12}{'put':>24}{'get':>24}{'scan':>24}")
    for store, rounds in results.items():
        columns = (
            f"{statistics.median(column):.0f} ({min(column):.0f} to {max(column):.0f})" for column in zip(*rounds)
        )
        print(f"{store:<12}" + "".join(f"{column:>24}" for column in columns))
    for store, error in absent.items():
        print(f"left out: {store}: {error}")


if __name__ == "__main__":
    main()

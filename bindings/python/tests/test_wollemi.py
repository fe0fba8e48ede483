"""The binding as programs use it."""

import asyncio
import contextlib
import copy
import importlib.metadata
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import wollemi

MIB = 1 << 20


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pool"


@pytest.fixture
def db():
    with wollemi.open(None, max_size=64 * MIB) as database:
        yield database


def test_the_readme_program_runs_as_typed(tmp_path):
    readme = pathlib.Path(__file__).parent.parent / "README.md"
    program = re.search(r"```python\n(.*?)```", readme.read_text(), re.DOTALL).group(1)
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "b'apricot' b'0.45'\nb'apple' b'0.30'\n"
    with wollemi.open(tmp_path / "shop.pool") as db:
        assert dict(db.map("prices")) == {b"apple, yesterday": b"0.30", b"apricot": b"0.45"}


def test_the_versions_are_in_step():
    workspace = pathlib.Path(__file__).parents[3] / "Cargo.toml"
    assert f'[workspace.package]\nversion = "{wollemi.__version__}"\n' in workspace.read_text()


def test_the_wheel_has_its_licences():
    files = {file.name for file in importlib.metadata.files("wollemi")}
    assert {"LICENSE-MIT", "LICENSE-APACHE"} <= files


def test_a_native_half_of_another_version_is_refused():
    program = textwrap.dedent(
        """
        import sys, types
        sys.modules["wollemi._native"] = types.SimpleNamespace(__version__="9.9.9")
        try:
            import wollemi
        except ImportError as refused:
            print(refused)
        """
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "with a native library of version 9.9.9: reinstall it" in run.stdout, run.stderr


def test_a_map_is_a_mutable_mapping(db):
    m = db.map("m")
    m[b"b"], m[b"a"], m[b"c"] = b"2", b"1", b"3"
    assert list(m) == [b"a", b"b", b"c"] and list(reversed(m)) == [b"c", b"b", b"a"]
    assert m[b"a"] == b"1" and m.get(b"x") is None and m.get(b"x", 7) == 7 and b"a" in m and b"x" not in m
    assert len(m) == 3 and m and m == {b"a": b"1", b"b": b"2", b"c": b"3"}
    with pytest.raises(KeyError):
        m[b"x"]
    with pytest.raises(KeyError):
        del m[b"x"]
    assert m.setdefault(b"a", b"9") == b"1" and m.setdefault(b"d", b"4") == b"4"
    assert m.pop(b"d") == b"4" and m.pop(b"d", None) is None
    with pytest.raises(KeyError):
        m.pop(b"d")
    m.update({b"e": b"5"})
    assert m.popitem() == (b"e", b"5") and m.popitem(last=False) == (b"a", b"1")
    assert m.first() == (b"b", b"2") and m.last() == (b"c", b"3")
    m.clear()
    assert not m and len(m) == 0
    with pytest.raises(KeyError):
        m.popitem()
    with pytest.raises(KeyError):
        m.first()
    m[bytearray(b"k")] = bytearray(b"v")
    assert m[b"k"] == b"v"


def test_an_entry_that_cannot_be_decoded_is_not_removed(db):
    plain = db.map("m")
    m = db.map("m", key="int", value="json")
    for key, value in ((b"\x80" + bytes(7), b"not json"), (b"odd", b"1")):
        plain[key] = value
        with pytest.raises(ValueError):
            m.popitem()
        with pytest.raises(ValueError), db.transaction() as tx:
            tx[m].popitem()
        with db.transaction() as tx, pytest.raises(ValueError):
            tx[m].popitem()
        assert dict(plain) == {key: value}
        plain.clear()
    plain[b"\x80" + bytes(7)] = b"not json"
    with pytest.raises(ValueError):
        m.pop(0)
    assert len(plain) == 1
    m.update({0: "zero", 1: "one", 2: "two"})
    assert m.pop(1) == "one" and m.popitem() == (2, "two") and m.popitem(last=False) == (0, "zero")
    with pytest.raises(KeyError):
        m.popitem()


def test_threads_pop_each_entry_once(db):
    m = db.map("m", key="int", value="int")
    m.update((i, i) for i in range(200))
    popped = []

    def pop(last):
        try:
            while True:
                popped.append(m.popitem(last)[0])
        except KeyError:
            pass

    threads = [threading.Thread(target=pop, args=(bool(i % 2),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(popped) == list(range(200))


def test_ranges(db):
    m = db.map("m")
    for key in (b"a", b"ab", b"abc", b"b", b"\xff", b"\xff\xff"):
        m[key] = key
    assert [key for key, _ in m[b"ab":b"b"]] == [b"ab", b"abc"]
    assert list(m.keys(b"b")) == [b"b", b"\xff", b"\xff\xff"]
    assert list(m.keys(stop=b"ab")) == [b"a"]
    assert list(m.keys(prefix=b"ab", reverse=True)) == [b"abc", b"ab"]
    assert list(m.keys(b"abc", prefix=b"ab")) == [b"abc"]
    assert list(m.keys(prefix=b"\xff")) == [b"\xff", b"\xff\xff"]
    assert list(m.keys(b"b", b"a")) == []
    view = m.items(prefix=b"ab")
    assert len(view) == 2 and (b"ab", b"ab") in view and (b"b", b"b") not in view
    m[b"abd"] = b""
    assert len(view) == 3
    with pytest.raises(ValueError):
        m[b"a":b"b":2]
    with pytest.raises(ValueError, match="no order"):
        list(db.map("hashed", index="clht").keys(b"a"))


def test_a_map_without_order_has_no_ends(db):
    m = db.map("hashed", index="clht")
    m.update((b"%d" % i, b"") for i in range(100))
    with db.snapshot() as then, db.transaction() as tx:
        for mapping in (m, then[m], tx[m]):
            for end in (mapping.first, mapping.last):
                with pytest.raises(ValueError, match="no order"):
                    end()
    assert m and len(list(m)) == 100


def test_a_map_without_order_is_cleared(db):
    m = db.map("hashed", index="clht")
    m.update((b"%d" % i, b"") for i in range(1000))
    with pytest.raises(ValueError, match="no order"):
        m.popitem()
    assert len(m) == 1000
    m.clear()
    assert not m


def test_setdefault_needs_no_default_for_a_present_key(db):
    m = db.map("m", key="str", value="str")
    m["a"] = "1"
    assert m.setdefault("a") == "1" and m.setdefault("b", "2") == "2"
    with pytest.raises(TypeError):
        m.setdefault("c")
    assert dict(m) == {"a": "1", "b": "2"}


def test_a_mistaken_codec_creates_no_map(db):
    for codecs in ({"key": "nope"}, {"value": "nope"}):
        with pytest.raises(ValueError):
            db.map("m", **codecs)
    assert db.maps() == {}


def test_a_transaction_pops_from_both_ends(db):
    m = db.map("m", key="int", value="str")
    m.update((i, f"{i}") for i in range(100))
    with db.transaction() as tx:
        assert tx[m].popitem() == (99, "99") and tx[m].popitem(last=False) == (0, "0")
        assert len(tx[m]) == 98 and len(m) == 100
    assert (m.first(), m.last(), len(m)) == ((1, "1"), (98, "98"), 98)
    with db.transaction() as tx:
        tx[m].clear()
        with pytest.raises(KeyError):
            tx[m].popitem()
    assert not m


def test_a_block_may_end_what_it_has_begun(db):
    m = db.map("m")
    with db.transaction() as tx:
        tx[m][b"a"] = b"1"
        tx.commit()
    with db.batch() as batch:
        batch.put(m, b"b", b"2")
        assert batch.commit()
    with db.batch() as batch:
        batch.expect(m, b"b", b"other")
        assert not batch.commit()
    with db.transaction() as tx, db.batch() as batch:
        tx[m][b"c"] = b"3"
        batch.put(m, b"c", b"3")
        tx.close()
        batch.close()
    calls = []

    def body(tx):
        calls.append(tx)
        tx[m][b"d"] = b"4"
        tx.commit()

    db.transact(body)
    assert len(calls) == 1 and dict(m) == {b"a": b"1", b"b": b"2", b"d": b"4"}
    # A commit that has failed is no end that a block has chosen.
    with pytest.raises(wollemi.ClosedError):
        with db.transaction() as tx:
            tx[m].get(b"a")
            m[b"a"] = b"by another"
            with pytest.raises(wollemi.ConflictError):
                tx.commit()


def test_the_ends_of_a_map(db):
    m = db.map("m", key="int", value="str")
    with db.snapshot() as then, db.transaction() as tx:
        for mapping in (m, then[m], tx[m]):
            with pytest.raises(KeyError):
                mapping.first()
    m.update({1: "one", 2: "two", 3: "three"})
    with db.snapshot() as then, db.transaction() as tx:
        tx[m][4] = "four"
        assert m.first() == then[m].first() == tx[m].first() == (1, "one")
        assert m.last() == then[m].last() == (3, "three") and tx[m].last() == (4, "four")


def test_multi_get_and_compare_and_swap(db):
    m = db.map("m")
    m[b"a"] = b"1"
    assert m.multi_get([b"a", b"x", b"a"]) == [b"1", None, b"1"]
    assert m.multi_get([b"x"], default=b"") == [b""]
    assert m.insert(b"b", b"2") and not m.insert(b"b", b"3")
    assert m.compare_and_swap(b"a", b"1", b"one") and not m.compare_and_swap(b"a", b"1", b"2")
    assert m.compare_and_swap(b"a", b"one", None) and b"a" not in m
    assert m.compare_and_swap(b"a", None, b"1") and m.discard(b"a") and not m.discard(b"a")


def test_what_cannot_be_is_refused(db, path):
    m = db.map("m")
    with pytest.raises(TypeError):
        m["text"] = b""
    with pytest.raises(ValueError, match="longest key"):
        m[b"k" * (wollemi.MAX_KEY + 1)] = b""
    with pytest.raises(ValueError, match="no index"):
        db.map("n", index="nothing")
    with pytest.raises(ValueError, match="held by"):
        db.map("m", index="part")
    with pytest.raises(ValueError):
        db.map("")
    with pytest.raises(ValueError):
        wollemi.open(path, level="paper")
    with pytest.raises(ValueError):
        wollemi.open(path, lock_wait=-1)
    with pytest.raises(FileNotFoundError):
        wollemi.open(path, create=False)
    path.write_bytes(b"something else")
    with pytest.raises(wollemi.DamagedError, match="not a Wollemi pool"):
        wollemi.open(path)
    small = db.map("small")
    with pytest.raises(wollemi.FullError):
        for i in range(200):
            small[b"%d" % i] = bytes(MIB)


def test_one_opening_at_a_time(path):
    with wollemi.open(path) as db:
        db.map("m")[b"k"] = b"v"
        with pytest.raises(wollemi.BusyError):
            wollemi.open(path, lock_wait=0)
    with wollemi.open(path, read_only=True) as db:
        assert db.map("m")[b"k"] == b"v"
        with pytest.raises(wollemi.ReadOnlyError):
            db.map("m")[b"k"] = b"w"


def test_closing_closes_everything(path):
    db = wollemi.open(path)
    m = db.map("m")
    m.update({b"a": b"1", b"b": b"2"})
    entries = iter(m.items())
    next(entries)
    then, tx, batch = db.snapshot(), db.transaction(), db.batch()
    view = then[m]
    db.close()
    db.close()
    uses = [lambda: m[b"a"], lambda: db.map("m"), lambda: view[b"a"], lambda: tx[m].get(b"a"), batch.commit]
    for use in uses:
        with pytest.raises(wollemi.ClosedError):
            use()
    with pytest.raises(wollemi.ClosedError):
        list(entries)
    with wollemi.open(path, lock_wait=0) as db:
        assert list(db.map("m")) == [b"a", b"b"]


def test_other_threads_run_while_a_call_works(db):
    m = db.map("m", key="int", value="int")
    keys = range(100_000)
    m.update((i, i) for i in keys)
    turns, ended = [0], threading.Event()

    def take_turns():
        while not ended.is_set():
            turns[0] += 1
            time.sleep(0)

    def commit():
        batch = db.batch()
        for i in range(2_000):
            batch.put(m, i, i)
        before = turns[0]
        assert batch.commit()
        return turns[0] > before

    def others_ran(call):
        before = turns[0]
        call()
        return turns[0] > before

    encoded = [m._key.encode(i) for i in keys]
    calls = {
        "count": lambda: others_ran(m._native.count),
        "multi_get": lambda: others_ran(lambda: m._native.multi_get(encoded)),
        "check": lambda: others_ran(db._native.check),
        "commit": commit,
    }
    # Python itself lets no other thread run for this time: only a call that releases the lock does.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1_000)
    other = threading.Thread(target=take_turns)
    other.start()
    try:
        # A thread that may run is not always scheduled while a call lasts.
        held = [name for name, call in calls.items() if not any(call() for _ in range(100))]
    finally:
        ended.set()
        sys.setswitchinterval(interval)
        other.join()
    assert held == []


def test_other_threads_run_while_an_opening_waits(path):
    db = wollemi.open(path)
    started, opened = threading.Event(), []

    def open_too():
        started.set()
        opened.append(wollemi.open(path, lock_wait=60))

    thread = threading.Thread(target=open_too)
    thread.start()
    started.wait()
    time.sleep(0.1)
    db.close()
    thread.join()
    opened[0].close()


def test_each_of_two_closers_waits(path):
    for _ in range(30):
        db = wollemi.open(path, lock_wait=0)
        db.map("m")[b"k"] = bytes(MIB)
        failed, start, one_by_one = [], threading.Barrier(2), threading.Lock()

        def close():
            start.wait()
            db.close()
            try:
                with one_by_one:
                    wollemi.open(path, lock_wait=0).close()
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=close) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []


def test_a_close_that_fails_says_so(path):
    # Each msync of the child fails from the prctl calls on: with EIO, by a seccomp filter.
    program = textwrap.dedent(
        """
        import ctypes, errno, struct, sys, wollemi
        db = wollemi.open(sys.argv[1])
        m = db.map("m")
        m[b"k"] = b"v"
        msync, to_errno, allow = 26, 0x50000 | errno.EIO, 0x7FFF0000
        steps = [(0x20, 0, 0, 0), (0x15, 0, 1, msync), (0x06, 0, 0, to_errno), (0x06, 0, 0, allow)]
        steps = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
        program = struct.pack("HP", 4, ctypes.addressof(steps))
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        none, one, filter = ctypes.c_ulong(0), ctypes.c_ulong(1), ctypes.c_ulong(2)
        assert prctl(38, one, none, none, none) == 0 and prctl(22, filter, program) == 0, ctypes.get_errno()
        try:
            db.close()
        except OSError as failed:
            print(failed)
        db.close()
        try:
            m[b"k"]
        except wollemi.ClosedError:
            print("closed")
        """
    )
    run = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    said = run.stdout.splitlines()
    assert len(said) == 2 and "writing to the medium" in said[0] and said[1] == "closed"
    with wollemi.open(path) as db:
        assert db.map("m")[b"k"] == b"v"


def test_what_is_made_beside_a_close_is_closed(path):
    db = wollemi.open(path)
    m = db.map("m")
    m[b"a"] = b"1"
    make = m._range

    def make_and_be_late(*bounds):
        cursor = make(*bounds)
        db.close()
        return cursor

    m._range = make_and_be_late
    late = []
    with pytest.raises(wollemi.ClosedError):
        late.append(iter(m.items()))
    wollemi.open(path, lock_wait=0).close()


class Late:
    """A native object whose results reach Python late: once `wait` has returned."""

    def __init__(self, native, wait):
        self._native, self._wait = native, wait

    def __getattr__(self, name):
        def call(*args):
            result = getattr(self._native, name)(*args)
            self._wait()
            return result

        return call


@pytest.mark.parametrize(
    "owner, make",
    [
        ("db", lambda db, m, then: db.map("new")),
        ("db", lambda db, m, then: db.batch()),
        ("db", lambda db, m, then: db.transaction()),
        ("db", lambda db, m, then: db.snapshot()),
        ("m", lambda db, m, then: iter(m.items())),
        ("m", lambda db, m, then: m.with_durability("eventual")),
        ("m", lambda db, m, then: m.clear()),
        ("then", lambda db, m, then: then[m]),
    ],
    ids=["map", "batch", "transaction", "snapshot", "cursor", "durability", "clear", "view"],
)
def test_a_close_waits_for_what_another_thread_is_making(path, owner, make):
    db = wollemi.open(path)
    m, then = db.map("m"), db.snapshot()
    owner = {"db": db, "m": m, "then": then}[owner]
    native = owner._native
    made, reopened = threading.Event(), threading.Event()

    def wait():
        made.set()
        # It times out if the close waits for this thread.
        reopened.wait(0.5)

    def use():
        with contextlib.suppress(wollemi.ClosedError):
            make(db, m, then)

    owner._native = Late(native, wait)
    user = threading.Thread(target=use)
    user.start()
    assert made.wait(60)
    owner._native = native
    try:
        db.close()
        wollemi.open(path, lock_wait=0).close()
    finally:
        reopened.set()
        user.join()


def test_nothing_is_made_once_a_close_has_begun(path):
    db = wollemi.open(path)
    native = db._native

    class Closing:
        map = native.map

        def close(self):
            with pytest.raises(wollemi.ClosedError):
                db.map("late")
            native.close()

    db._native = Closing()
    db.close()
    with wollemi.open(path, lock_wait=0) as db:
        assert "late" not in db


def test_threads_that_iterate_beside_a_close_are_told(path):
    for _ in range(20):
        db = wollemi.open(path)
        m = db.map("m")
        m.update((b"%d" % i, b"v") for i in range(10))
        told, started = [], threading.Barrier(5)

        def iterate():
            started.wait()
            kept = []
            try:
                while True:
                    kept.append(m.items())
                    kept.append(iter(kept[-1]))
                    next(kept[-1])
            except Exception as error:
                told.append(error)

        threads = [threading.Thread(target=iterate) for _ in range(4)]
        for thread in threads:
            thread.start()
        started.wait()
        time.sleep(0.01)
        db.close()
        for thread in threads:
            thread.join()
        assert [type(error) for error in told] == [wollemi.ClosedError] * 4
        wollemi.open(path, lock_wait=0).close()


@pytest.mark.parametrize("kind", ["transaction", "batch", "snapshot"])
def test_a_close_waits_for_calls_with_a_map(path, kind):
    for _ in range(20):
        db = wollemi.open(path)
        m = db.map("m")
        m[b"a"] = b"1"
        told, started = [], threading.Barrier(4, timeout=60)

        def use():
            tx, batch, then = db.transaction(), db.batch(), db.snapshot()
            call = {
                "transaction": lambda: tx[m][b"a"],
                "batch": lambda: batch.expect(m, b"a", b"1"),
                "snapshot": lambda: then[m],
            }[kind]
            started.wait()
            try:
                while True:
                    call()
            except Exception as error:
                told.append(error)

        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        started.wait()
        db.close()
        try:
            wollemi.open(path, lock_wait=0).close()
        finally:
            for thread in threads:
                thread.join()
        assert [type(error) for error in told] == [wollemi.ClosedError] * 3


def test_maps(db):
    db.map("a").close()
    db.map("b", index="part").close()
    assert db.maps() == {"a": "roart", "b": "part"} and "a" in db and "c" not in db
    a = db.map("a")
    with pytest.raises(wollemi.InUseError):
        db.drop("a")
    a.close()
    db.drop("a")
    assert db.maps() == {"b": "part"}
    with pytest.raises(KeyError):
        db.drop("a")


def test_batches(db):
    a, b = db.map("a"), db.map("b")
    with db.batch() as batch:
        batch.expect(a, b"k", None)
        batch.put(a, b"k", b"1")
        batch.put(b, b"k", b"2")
    assert a[b"k"] == b"1" and b[b"k"] == b"2"
    batch = db.batch()
    batch.expect(a, b"k", b"nothing")
    batch.remove(a, b"k")
    assert not batch.commit() and b"k" in a
    with pytest.raises(wollemi.ClosedError):
        batch.commit()
    with pytest.raises(ZeroDivisionError):
        with db.batch() as batch:
            batch.remove(a, b"k")
            1 / 0
    assert b"k" in a


def test_transactions(db):
    m = db.map("m")
    m.update({b"a": b"1", b"b": b"2", b"c": b"3"})
    with db.transaction() as tx:
        inside = tx[m]
        inside[b"d"] = b"4"
        del inside[b"a"]
        assert list(inside) == [b"b", b"c", b"d"] and len(inside) == 3
        assert list(inside.keys(reverse=True)) == [b"d", b"c", b"b"]
        assert list(m) == [b"a", b"b", b"c"]
        for key in inside.keys(prefix=b""):
            inside[key] = b"seen"
    assert dict(m) == {b"b": b"seen", b"c": b"seen", b"d": b"seen"}
    with pytest.raises(wollemi.ConflictError) as conflict:
        with db.transaction() as tx:
            tx[m][b"b"]
            m[b"b"] = b"by another"
            tx[m][b"c"] = b"x"
    assert conflict.value.key == b"b" and conflict.value.map == "m"
    with pytest.raises(ZeroDivisionError):
        with db.transaction() as tx:
            del tx[m][b"b"]
            1 / 0
    assert m[b"b"] == b"by another" and m[b"c"] == b"seen"
    calls = []

    def once_disturbed(tx):
        calls.append(None)
        found = tx[m][b"b"]
        if len(calls) == 1:
            m[b"b"] = b"again"
        tx[m][b"e"] = found
        return found

    assert db.transact(once_disturbed) == b"again" and len(calls) == 2 and m[b"e"] == b"again"


def test_writes_of_other_keys_fail_no_transaction_twice(db):
    m, entries = db.map("m", key="int"), db.map("range", key="int")
    entries.update((i, b"entry") for i in range(2000))
    ended = threading.Event()

    def write(key):
        while not ended.is_set():
            m[key % 50_000] = b"written"
            key += 7919

    # They share stripes with the keys below 0, which nobody writes.
    writers = [threading.Thread(target=write, args=(i,)) for i in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(20):
            runs = []

            def body(tx):
                runs.append(tx)
                for key in range(-1000, 0):
                    tx[m].get(key)
                len(tx[entries])
                tx[m][50_000] = b"done"

            db.transact(body)
            assert len(runs) <= 2
    finally:
        ended.set()
        for writer in writers:
            writer.join()


@pytest.mark.parametrize("end", ["commit", "close"])
def test_a_cursor_of_a_transaction_that_is_over_says_so(db, end):
    m = db.map("m")
    m.update({b"a": b"1", b"b": b"2"})
    tx = db.transaction()
    entries = iter(tx[m].items())
    assert next(entries) == (b"a", b"1")
    getattr(tx, end)()
    with pytest.raises(wollemi.ClosedError):
        next(entries)


def test_what_comes_of_reads_of_different_moments_is_tried_again(db):
    m = db.map("m")
    m.update({b"a": b"0", b"b": b"0"})
    calls = []

    def body(tx):
        calls.append(tx)
        first = tx[m][b"a"]
        if len(calls) == 1:
            m.update({b"a": b"1", b"b": b"1"})
        assert first == tx[m][b"b"]
        return first

    assert db.transact(body) == b"1" and len(calls) == 2

    def wrong(tx):
        calls.append(tx)
        tx[m][b"a"]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        db.transact(wrong)
    assert len(calls) == 3
    assert db.transact(lambda tx: tx[m][b"a"], tries=0) == b"1"


def test_prefixes_of_tuples_are_their_first_elements(db):
    m = db.map("m", key="tuple")
    keys = [("a",), ("a", 1), ("a", "b"), ("a\0b",), (b"\1",), (b"\1", None), (b"\1\0z",), ("b", 2)]
    m.update(dict.fromkeys(keys, b""))
    assert list(m.keys(prefix=("a",))) == [("a",), ("a", "b"), ("a", 1)]
    assert list(m.keys(prefix=("a",), reverse=True)) == [("a", 1), ("a", "b"), ("a",)]
    assert list(m.keys(("a", "b"), ("a", 1), prefix=("a",))) == [("a", "b")]
    assert list(m.keys(prefix=(b"\1",))) == [(b"\1",), (b"\1", None)]
    assert len(m.keys(prefix=())) == len(keys)


def test_elements_of_different_types_are_ordered_by_type(db):
    m = db.map("m", key="tuple")
    keys = [(None,), (b"b",), ("a",), (("a",),), (2,), (1.5,), (False,), (True,)]
    m.update(dict.fromkeys(reversed(keys), b""))
    assert list(m) == keys


def test_threads_move_money_and_none_is_lost(db):
    accounts = db.map("accounts", key="int", value="int")
    accounts.update({i: 100 for i in range(8)})
    done = threading.Event()

    def move(thread):
        for i in range(100):
            def body(tx, a=(thread + i) % 8, b=(thread * 3 + i * 5) % 8):
                if a != b:
                    tx[accounts][a] -= 1
                    tx[accounts][b] += 1
            db.transact(body, tries=10_000)

    threads = [threading.Thread(target=move, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        with db.snapshot() as then:
            assert sum(then[accounts].values()) == 800
    for thread in threads:
        thread.join()
    assert sum(accounts.values()) == 800


def test_snapshots_and_backups(db, tmp_path):
    m = db.map("m")
    m[b"a"] = b"1"
    with db.snapshot() as then:
        m[b"a"], m[b"b"] = b"2", b"3"
        view = then.map(m)
        assert dict(view) == {b"a": b"1"} and len(view) == 1 and then.memory > 0
        then.backup(tmp_path / "backup")
        with pytest.raises(OSError):
            then.backup(tmp_path / "backup")
    assert (tmp_path / "backup").stat().st_size > 0
    # A backup that fails leaves no file.
    with db.snapshot(max_memory=1) as outgrown:
        m[b"a"] = b"4"
        with pytest.raises(wollemi.WollemiError):
            outgrown.backup(tmp_path / "failed")
    assert not [file for file in tmp_path.iterdir() if file.name.startswith("failed")]
    with pytest.raises(wollemi.ClosedError):
        then[m]


def test_expiry(db):
    m = db.map("m", key="str").expiring()
    m.put("alice", b"token", seconds=3600)
    m.put("bob", b"token", seconds=0)
    m.put("carol", b"token")
    assert m.get("alice") == b"token" and 0 < m.left("alice") <= 3600
    assert m.get("bob") is None and m.left("carol") is None and m.touch("carol", 5) and not m.touch("bob")
    assert m.sweep() == 1 and m.discard("carol") and not m.discard("bob")
    with pytest.raises(KeyError):
        m.left("bob")
    # A duration too long to represent means no expiry, and a negative one is over.
    for seconds in (float("inf"), 1e300):
        m.put("dave", b"token", seconds=seconds)
        assert m.get("dave") == b"token" and m.left("dave") is None
        assert m.touch("dave", seconds) and m.get("dave") == b"token"
    m.put("dave", b"token", seconds=1e18)
    assert m.get("dave") == b"token"
    m.put("erin", b"token", seconds=-1)
    assert m.get("erin") is None
    with pytest.raises(ValueError):
        m.put("erin", b"token", seconds=float("nan"))


def test_it_tells_of_itself(db):
    m = db.map("m")
    m[b"a"] = b"1"
    db.sync()
    db.checkpoint()
    db.wait_recovered()
    assert db.give_back() >= 0 and db.level == "process" and db.stats()["maps"][0]["name"] == "m"
    clean, report = db.check()
    assert clean and report["maps"][0]["keys"] == 1


def test_level_disk(path):
    with wollemi.open(path, level="disk", durability="eventual", sync_within=0.5) as db:
        m = db.map("m")
        m[b"a"] = b"1"
        m.with_durability("immediate")[b"b"] = b"2"
        with db.batch(durability="immediate") as batch:
            batch.put(m, b"c", b"3")
        db.sync()
        db.checkpoint(full=True)
        assert db.level == "disk"


def test_nothing_can_be_pickled(db):
    m = db.map("m")
    for thing in (db, m, db.batch(), db.transaction(), db.snapshot(), m.expiring(), m.aio()):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(thing)
        with pytest.raises(TypeError, match="cannot be pickled"):
            copy.copy(thing)


def test_asyncio(db):
    async def program():
        m = db.map("m", key="int").aio()
        await asyncio.gather(*(m.put(i, b"%d" % i) for i in range(10)))
        assert await m.get(3) == b"3" and await m.multi_get([1, 99]) == [b"1", None]
        assert await m.discard(3) and await m.compare_and_swap(4, b"4", b"four")
        return [key async for key, _ in m.items(page=4)]

    assert asyncio.run(program()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_what_was_told_survives_kill_9(path, tmp_path):
    """A child is killed amid its writes: every number that it acknowledged is present."""
    program = textwrap.dedent(
        """
        import sys, wollemi
        db = wollemi.open(sys.argv[1])
        m = db.map("m", key="int", value="str")
        number = len(m)
        while True:
            if number % 2:
                m[number] = f"number {number}"
            else:
                with db.transaction() as tx:
                    tx[m][number] = f"number {number}"
            sys.stdout.write(f"{number}\\n")
            sys.stdout.flush()
            number += 1
        """
    )
    seed = int(os.environ.get("WOLLEMI_SEED", os.getpid()))
    print(f"WOLLEMI_SEED={seed}")
    told = -1
    for turn in range(4):
        child = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range((seed * 7919 + turn * 104729) % 400 + 1):
            line = child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().splitlines(keepends=True)
        child.wait()
        whole = [line] + [one for one in rest if one.endswith("\n")]
        assert int(whole[-1]) > told
        told = int(whole[-1])
        with wollemi.open(path) as db:
            m = db.map("m", key="int", value="str")
            assert m.multi_get(range(told + 1)) == [f"number {i}" for i in range(told + 1)]
            assert db.check()[0]

"""Databases, maps and their objects, over the native half."""

import asyncio
import contextlib
import itertools
import json
import os
import random
import threading
import time
import weakref
from collections.abc import ItemsView, KeysView, Mapping, MutableMapping, ValuesView

from . import _native, codecs

# The package and its native half are built together; different versions are refused.
_VERSION = "0.1.0"
if _native.__version__ != _VERSION:
    raise ImportError(f"wollemi {_VERSION} with a native library of version {_native.__version__}: reinstall it")

_MISSING = object()


def open(  # noqa: A001: the public name
    path,
    *,
    level="process",
    index="roart",
    max_size=None,
    page_size=None,
    recovery_threads=1,
    create=True,
    read_only=False,
    lock_wait=2.0,
    durability="immediate",
    sync_within=1.0,
    after_power_loss="refuse",
):
    """Opens the database in the file `path`, and creates it if it is missing. None: a database in memory.

    level: "process" (survives kill -9), "disk" (also a loss of power, with a log) or "power" (persistent memory).
    index: the index for new maps, "roart" by default. max_size: the maximum size of the pool, in bytes.
    lock_wait: seconds to wait for another process that has it open. durability: at level "disk", whether
    writes are durable when they return ("immediate") or within `sync_within` seconds ("eventual").
    """
    wanted = {
        "level": level,
        "index": index,
        "max_size": max_size,
        "page_size": page_size,
        "recovery_threads": recovery_threads,
        "create": create,
        "read_only": read_only,
        "lock_wait": float(lock_wait),
        "immediate": _immediate(durability),
        "sync_within": float(sync_within),
        "after_power_loss": after_power_loss,
    }
    return Database(_native.Database.open(None if path is None else os.fsdecode(path), wanted))


def _immediate(durability):
    if durability not in ("immediate", "eventual"):
        raise ValueError(f"durability='{durability}': expected 'immediate' or 'eventual'")
    return durability == "immediate"


class _Unpicklable:
    def __reduce_ex__(self, protocol):
        name = type(self).__name__
        raise TypeError(f"a wollemi.{name} cannot be pickled: it belongs to this process; pass the path, and open it there")


class _Closing(_Unpicklable):
    """An object that is closed with its database, or earlier."""

    def __init__(self, native, database):
        self._native = native
        self._database = database

    def close(self):
        """Releases the database. Later uses of the object raise ClosedError."""
        self._native.close()


class Database(_Unpicklable):
    """A database: a pool of named maps. A context manager that closes it."""

    def __init__(self, native):
        self._native = native
        # The native objects created from it, for as long as they are used, and the threads that are creating one. A
        # thread that begins during a close finds the database closed; a close waits for those that began earlier.
        self._children = weakref.WeakSet()
        self._creating = []
        self._process = os.getpid()
        self._closed = False
        self._lock = threading.Condition()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """Closes the database and all objects created from it: maps, iterators, transactions, snapshots. The pool is on
        the medium then; OSError or another exception if the medium fails: then it is unknown which writes reached it,
        and the pool counts as one whose process was killed."""
        with self._lock:
            self._closed = True
            # A signal's handler may close it amid a creation of its own thread, which cannot end before.
            # Those of the parent of a forked child end in the parent.
            own = threading.get_ident()
            if os.getpid() == self._process and all(thread != own for thread, in self._creating):
                self._lock.wait_for(lambda: not self._creating)
            children = list(self._children)
        for child in children:
            child.close()
        self._native.close()

    def _create(self, make, *args):
        """Returns the native object that `make(*args)` creates, to be closed with the database."""
        creation, native = [threading.get_ident()], None
        # An interrupt may come at any point from here on.
        try:
            with self._lock:
                if self._closed:
                    raise _native.ClosedError("closed: this object or its database is closed")
                self._creating.append(creation)
            native = make(*args)
        finally:
            with self._lock:
                self._creating = [other for other in self._creating if other is not creation]
                if native is not None:
                    self._children.add(native)
                self._lock.notify_all()
        if self._closed:
            native.close()
            raise _native.ClosedError("closed: the database was closed while this object was being created")
        return native

    def map(self, name, *, index=None, key=None, value=None):
        """Returns the map of this name, and creates it if it is missing. `key` and `value` are codecs or their names:
        "bytes" (the default), "str", "int", "tuple" and, for values, "json"."""
        # A mistaken codec creates no map.
        key, value = codecs.find(key), codecs.find(value)
        return Map(self._create(self._native.map, name, index), self, key, value)

    def __contains__(self, name):
        return self._native.has_map(name)

    def maps(self):
        """Returns the names of all maps, and of their indexes."""
        return dict(self._native.maps())

    def drop(self, name):
        """Removes a map with its entries. KeyError if it does not exist; InUseError while it, or any snapshot, is
        open."""
        if not self._native.drop_map(name):
            raise KeyError(name)

    def batch(self, *, durability=None):
        """Returns a batch, whose changes are all made or none, also in a crash: `with db.batch() as batch:
        batch.put(...)`."""
        batch = Batch(self._create(self._native.batch), self)
        if durability is not None:
            batch._native.set_durability(_immediate(durability))
        return batch

    def transaction(self, *, durability=None):
        """Returns a transaction: `with db.transaction() as tx: ...` commits at the end of the block, and discards it
        after an exception, unless the block has committed or closed it. ConflictError if something it has read was
        changed meanwhile: then `transact` runs it again."""
        return self._begin(durability)

    def _begin(self, durability, again=False):
        # A transaction that runs again after a conflict is not failed by writes of other keys.
        transaction = Transaction(self._create(self._native.begin, again), self)
        if durability is not None:
            transaction._native.set_durability(_immediate(durability))
        return transaction

    def transact(self, function, *, tries=100, durability=None):
        """Calls `function(transaction)` and commits; again after a conflict, up to `tries` times (at least once).
        Returns its result. An exception of `function` counts as a conflict if something it has read was changed
        meanwhile."""
        pause = 2e-6
        tries = max(tries, 1)
        for attempt in range(1, tries + 1):
            try:
                with self._begin(durability, again=attempt > 1) as transaction:
                    try:
                        return function(transaction)
                    except _native.ConflictError:
                        raise
                    except Exception:
                        # It may result from inconsistent reads: then it is a conflict.
                        with contextlib.suppress(_native.ClosedError):
                            transaction._native.check()
                        raise
            except _native.ConflictError:
                if attempt >= tries:
                    raise
            time.sleep(random.random() * pause)
            pause = min(pause * 2, 0.005)

    def snapshot(self, *, max_memory=None):
        """Takes a snapshot of all maps, readable while other threads write. A context manager that closes it."""
        return Snapshot(self._create(self._native.snapshot, max_memory), self)

    @property
    def level(self):
        """Returns the level, which says what acknowledged writes survive: "process", "disk" or "power"."""
        return self._native.level()

    def sync(self):
        """Waits until all writes that have returned are durable."""
        self._native.sync()

    def checkpoint(self, full=False):
        """Takes a checkpoint, so that the log can drop older records. Level "disk" only."""
        self._native.checkpoint(full)

    def wait_recovered(self):
        """Waits until the search for unused space that follows an opening has ended."""
        self._native.wait_recovered()

    def give_back(self):
        """Returns free pages to the file system; returns their number of bytes."""
        return self._native.give_back()

    def stats(self):
        """Returns its statistics, as a dict."""
        return json.loads(self._native.stats())

    def check(self):
        """Walks the whole pool and looks for damage: returns whether it is sound, and a report. No thread may write
        meanwhile."""
        clean, report = self._native.check()
        return clean, json.loads(report)


class _Readable(_Closing):
    """A readable mapping: a map, a map in a snapshot, or a map in a transaction."""

    def __init__(self, native, database, key, value):
        super().__init__(native, database)
        self._key, self._value = key, value
        self._plain = isinstance(key, codecs.Bytes) and isinstance(value, codecs.Bytes)

    # TransactionMap overrides these: its native methods take the map, too.
    def _get(self, key):
        return self._native.get(key)

    def _range(self, start, stop, prefix, reverse):
        return self._native.range(start, stop, prefix, reverse)

    def _end(self, last):
        return self._native.end(last)

    def _entry(self, pair):
        if pair is None:
            raise KeyError("the map is empty")
        return self._key.decode(pair[0]), self._value.decode(pair[1])

    def _bound(self, key):
        if key is None:
            return None
        if not getattr(self._key, "ordered", False):
            raise TypeError("ranges need a codec that preserves the order of keys")
        return self._key.encode(key)

    def __getitem__(self, key):
        if isinstance(key, slice):
            if key.step is not None:
                raise ValueError("a range of keys has no step: use items(reverse=True) to go backwards")
            return self.items(key.start, key.stop)
        found = self._get(self._key.encode(key))
        if found is None:
            raise KeyError(key)
        return self._value.decode(found)

    def get(self, key, default=None):
        found = self._get(self._key.encode(key))
        return default if found is None else self._value.decode(found)

    def __contains__(self, key):
        return self._get(self._key.encode(key)) is not None

    def __iter__(self):
        return iter(self.keys())

    def __reversed__(self):
        return iter(self.keys(reverse=True))

    def items(self, start=None, stop=None, *, prefix=None, reverse=False):
        """Returns a view of the entries in key order: from `start`, before `stop`, with this `prefix`; None: no bound.
        It can be iterated repeatedly: each time it shows the present entries."""
        return _Items(self, start, stop, prefix, reverse)

    def keys(self, start=None, stop=None, *, prefix=None, reverse=False):
        """Returns a view of the keys, like `items`."""
        return _Keys(self, start, stop, prefix, reverse)

    def values(self, start=None, stop=None, *, prefix=None, reverse=False):
        """Returns a view of the values in the order of their keys, like `items`."""
        return _Values(self, start, stop, prefix, reverse)

    def first(self):
        """Returns the entry with the smallest key. KeyError if there is none; ValueError if the index has no order."""
        return self._entry(self._end(False))

    def last(self):
        """Returns the entry with the largest key, like `first`."""
        return self._entry(self._end(True))

    def _pairs(self, bounds):
        start, stop, prefix, reverse = bounds
        start, stop, prefix = self._bound(start), self._bound(stop), self._bound(prefix)
        if prefix is not None and hasattr(self._key, "begin_with"):
            least, behind = self._key.begin_with(prefix)
            start = least if start is None else max(start, least)
            stop = behind if stop is None else min(stop, behind)
            prefix = None
        cursor = self._database._create(self._range, start, stop, prefix, reverse)
        if self._plain:
            return cursor
        key, value = self._key.decode, self._value.decode
        return ((key(k), value(v)) for k, v in cursor)


class _Ranged:
    def __init__(self, mapping, *bounds):
        super().__init__(mapping)
        self._bounds = bounds
        self._is_all = bounds[:3] == (None, None, None)

    def __len__(self):
        if self._is_all:
            return len(self._mapping)
        return sum(1 for _ in self._mapping._pairs(self._bounds))

    def __repr__(self):
        return f"<{type(self).__name__[1:].lower()} of {self._mapping!r}>"


class _Items(_Ranged, ItemsView):
    def __iter__(self):
        return iter(self._mapping._pairs(self._bounds))

    def __contains__(self, item):
        return ItemsView.__contains__(self, item) if self._is_all else any(item == found for found in self)


class _Keys(_Ranged, KeysView):
    def __iter__(self):
        return (key for key, _ in self._mapping._pairs(self._bounds))

    def __contains__(self, key):
        return key in self._mapping if self._is_all else any(key == found for found in self)


class _Values(_Ranged, ValuesView):
    def __iter__(self):
        return (value for _, value in self._mapping._pairs(self._bounds))

    def __contains__(self, value):
        return any(value == found for found in self)


class Map(_Readable, MutableMapping):
    """A map of a database, ordered by its keys' bytes: a dict that survives kill -9.

    `m[key]`, `m[key] = value`, `del m[key]`, `key in m`, `m[b"a":b"b"]` for a range of entries, and all that a
    MutableMapping has. `len(m)` visits each entry. Every change is durable, at the database's level, when it returns.
    """

    # None: that of the database's writes.
    _durability = None

    def __repr__(self):
        return f"<wollemi.Map {self.name!r}>"

    @property
    def name(self):
        """Returns the map's name."""
        return self._native.name()

    @property
    def index(self):
        """Returns the index that holds it."""
        return self._native.index()

    def __setitem__(self, key, value):
        self._native.put(self._key.encode(key), self._value.encode(value))

    def __delitem__(self, key):
        if isinstance(key, slice):
            raise TypeError("a range of keys cannot be deleted at once")
        if not self._native.remove(self._key.encode(key)):
            raise KeyError(key)

    def __contains__(self, key):
        return self._native.contains(self._key.encode(key))

    def __len__(self):
        return self._native.count()

    def __bool__(self):
        return any(True for _ in self.keys())

    def multi_get(self, keys, default=None):
        """Returns the values of many keys, in order, `default` for absent ones. Faster than single gets."""
        found = self._native.multi_get([self._key.encode(key) for key in keys])
        return [default if value is None else self._value.decode(value) for value in found]

    def insert(self, key, value):
        """Adds the key if it is absent; returns whether it was."""
        return self._native.insert(self._key.encode(key), self._value.encode(value))

    def setdefault(self, key, default=None):
        while True:
            found = self.get(key, _MISSING)
            if found is not _MISSING:
                return found
            encoded = self._value.encode(default)
            if self._native.insert(self._key.encode(key), encoded):
                return self._value.decode(encoded)

    def discard(self, key):
        """Removes the key; returns whether it was present."""
        return self._native.remove(self._key.encode(key))

    def pop(self, key, default=_MISSING):
        encoded = self._key.encode(key)
        while True:
            found = self._native.get(encoded)
            if found is None:
                if default is _MISSING:
                    raise KeyError(key)
                return default
            value = self._value.decode(found)
            if self._native.compare_and_swap(encoded, found, None):
                return value

    def popitem(self, last=True):
        """Removes the entry with the largest key, or the smallest, and returns it: no two threads get the same.
        KeyError if there is none; ValueError if the index has no order. An entry that cannot be decoded remains."""
        if self._plain:
            return self._entry(self._native.pop_end(last))
        # The entry is decoded before it is removed.
        return self._database.transact(lambda tx: tx[self].popitem(last), durability=self._durability)

    def clear(self):
        """Removes all entries, one after the other. Entries that other threads add meanwhile may remain."""
        for key, _ in self._database._create(self._native.range):
            self._native.remove(key)

    def compare_and_swap(self, key, expected, new):
        """Replaces the value `expected` by `new` (None: absent); returns whether the value was `expected`."""
        encode = self._value.encode
        return self._native.compare_and_swap(
            self._key.encode(key),
            None if expected is None else encode(expected),
            None if new is None else encode(new),
        )

    def with_durability(self, durability):
        """Returns the same map with writes durable when they return ("immediate") or soon ("eventual"). Level
        "disk"."""
        native = self._database._create(self._native.with_durability, _immediate(durability))
        other = Map(native, self._database, self._key, self._value)
        other._durability = durability
        return other

    def expiring(self):
        """Returns the map as one whose entries may expire. Use a map either this way or directly, not both."""
        return Expiring(self)

    def aio(self):
        """Returns the map for asyncio: its methods run in threads, and are awaited."""
        return AsyncMap(self)


class Expiring(_Unpicklable):
    """A map whose entries expire after a number of seconds. Expiry times survive crashes; the clock is the system's."""

    def __init__(self, map_):
        self._map = map_
        self._native = map_._native

    def put(self, key, value, seconds=None):
        """Sets the key's value for this many seconds; None or infinity: it never expires."""
        self._native.put_expiring(self._map._key.encode(key), self._map._value.encode(value), seconds)

    def get(self, key, default=None):
        """Returns the value of a key that has not expired."""
        found = self._native.get_expiring(self._map._key.encode(key))
        return default if found is None else self._map._value.decode(found[0])

    def left(self, key):
        """Returns the seconds until a key expires; None: never. KeyError if the key is absent or expired."""
        found = self._native.get_expiring(self._map._key.encode(key))
        if found is None:
            raise KeyError(key)
        return found[1]

    def touch(self, key, seconds=None):
        """Replaces the life of a key that has not expired; returns whether there is one."""
        return self._native.touch_expiring(self._map._key.encode(key), seconds)

    def discard(self, key):
        """Removes the key; returns whether it was present and had not expired."""
        return self._native.remove_expiring(self._map._key.encode(key))

    def sweep(self):
        """Removes expired entries, which otherwise take space until their keys are written; returns their number."""
        return self._native.sweep_expiring()


class AsyncMap(_Unpicklable):
    """A map whose methods are awaited, and run in threads (asyncio.to_thread), so that no event loop waits for a
    disk."""

    def __init__(self, map_):
        self._map = map_

    async def get(self, key, default=None):
        return await asyncio.to_thread(self._map.get, key, default)

    async def multi_get(self, keys, default=None):
        return await asyncio.to_thread(self._map.multi_get, keys, default)

    async def put(self, key, value):
        await asyncio.to_thread(self._map.__setitem__, key, value)

    async def discard(self, key):
        return await asyncio.to_thread(self._map.discard, key)

    async def compare_and_swap(self, key, expected, new):
        return await asyncio.to_thread(self._map.compare_and_swap, key, expected, new)

    async def items(self, start=None, stop=None, *, prefix=None, reverse=False, page=256):
        """Yields the entries in key order, read `page` at a time."""
        entries = iter(self._map.items(start, stop, prefix=prefix, reverse=reverse))

        def some():
            return list(itertools.islice(entries, page))

        while found := await asyncio.to_thread(some):
            for entry in found:
                yield entry
            if len(found) < page:
                return


class _Ending(_Closing):
    """Changes that the end of a block commits, unless they were committed or discarded in the block."""

    def __init__(self, native, database):
        super().__init__(native, database)
        self._ended = False

    def close(self):
        """Discards the changes, unless they were committed."""
        super().close()
        self._ended = True

    def commit(self):
        committed = self._native.commit()
        self._ended = True
        return committed

    def __enter__(self):
        return self


class Batch(_Ending):
    """Changes of any maps that are all made or none. Of several changes to one key the last counts."""

    def put(self, map_, key, value):
        """Sets the key's value."""
        self._native.put(map_._native, map_._key.encode(key), map_._value.encode(value))

    def remove(self, map_, key):
        """Removes the key, if it is present."""
        self._native.remove(map_._native, map_._key.encode(key))

    def expect(self, map_, key, value):
        """Makes the commit conditional on the key having this value; None: on its absence."""
        value = None if value is None else map_._value.encode(value)
        self._native.expect(map_._native, map_._key.encode(key), value)

    def commit(self):
        """Commits it, durably when this returns; returns whether all expectations held."""
        return super().commit()

    def __exit__(self, kind, *error):
        if kind is not None:
            self.close()
        elif not self._ended and not self.commit():
            raise _native.WollemiError("the batch was not committed: an expectation did not hold")


class Transaction(_Ending):
    """Reads and changes of any maps that happen together, atomically, or not at all."""

    def map(self, map_):
        """Returns the map as the transaction sees and changes it."""
        return TransactionMap(self, map_)

    __getitem__ = map

    def commit(self):
        """Commits it, durably when this returns. ConflictError, with nothing changed, if something it has read was
        changed."""
        super().commit()

    def __exit__(self, kind, *error):
        if kind is not None:
            self.close()
        elif not self._ended:
            self.commit()


class TransactionMap(_Readable, MutableMapping):
    """A map in a transaction. The keys read, and the gaps between the keys of a range, must be unchanged at the
    commit."""

    def __init__(self, transaction, map_):
        super().__init__(transaction._native, transaction._database, map_._key, map_._value)
        # Reads go through the transaction: see _get and _range.
        self._map = map_._native

    def close(self):
        """Has no effect: close the transaction instead."""

    def _get(self, key):
        return self._native.get(self._map, key)

    def _range(self, start, stop, prefix, reverse):
        return self._native.range(self._map, start, stop, prefix, reverse)

    def _end(self, last):
        return self._native.end(self._map, last)

    def __setitem__(self, key, value):
        self._native.put(self._map, self._key.encode(key), self._value.encode(value))

    def __delitem__(self, key):
        if not self._native.remove(self._map, self._key.encode(key)):
            raise KeyError(key)

    def __len__(self):
        return sum(1 for _ in self._pairs((None, None, None, False)))

    def popitem(self, last=True):
        """Removes the entry with the largest key, or the smallest, and returns it. KeyError if there is none."""
        entry = self._entry(self._end(last))
        self._native.pop_end(self._map, last)
        return entry


class Snapshot(_Closing):
    """All maps at one moment."""

    def map(self, map_):
        """Returns a map as it was."""
        native = self._database._create(self._native.view, map_._native)
        return View(native, self._database, map_._key, map_._value)

    __getitem__ = map

    @property
    def memory(self):
        """Returns the approximate bytes it holds for later changes."""
        return self._native.memory()

    def backup(self, path):
        """Writes a backup of all maps, as they were, to a new file, which gets its name when it is complete; until then
        it has a temporary name. `wollemi restore` creates a pool from it."""
        self._native.backup(os.fsdecode(path))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


class View(_Readable, Mapping):
    """A map of a snapshot. It keeps the snapshot until it is closed or garbage-collected."""

    def __len__(self):
        return sum(1 for _ in self._pairs((None, None, None, False)))

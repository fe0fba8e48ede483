"""pymemcache and redis-py write independently until the server is gone, and verify the data afterwards.

    killed.py work MEMCACHED_PORT REDIS_PORT LEDGER     until the server is gone
    killed.py verify MEMCACHED_PORT REDIS_PORT LEDGER   exits with 1 if anything acknowledged is lost

The ledger has a line of JSON for each operation that begins, and one for each that is acknowledged:
[acknowledged, client, key, item]. An item consists of its data, its flags, and two bounds of its expiry in milliseconds
since 1970, the second of which is known only after the acknowledgement; null if it does not expire. No item: the key is
absent. No key: all are flushed. `verify` also records what it finds, as acknowledged.

Each client has its own keys: plain ones that live long, short-lived ones, ones that are set and deleted, some that are
set together, a counter, and a number that is changed only by compare-and-swap. Beside the ledger (LEDGER.held) is a value
with the unique that the memcached client got: the value is changed with it after the kill. Occasionally one client
flushes all, while the other waits.
"""

import contextlib
import json
import pathlib
import sys
import threading
import time

import pymemcache
import redis

LIFE = 1000
KEYS = 50
MANY = 24
BETWEEN_FLUSHES = 15
HELD = "m:held"
GONE = (OSError, EOFError, pymemcache.MemcacheError, redis.RedisError)


def now():
    return time.time_ns() // 1_000_000


class Memcached:
    name = "m"
    short = 1000

    def __init__(self, port):
        self.client = pymemcache.Client(("127.0.0.1", port), default_noreply=False, timeout=60)

    def get(self, key):
        return self.client.get(key)

    def set(self, key, value, flags, life):
        return self.client.set(key, value, expire=life // 1000, flags=flags)

    def set_many(self, values):
        return self.client.set_many(values) == []

    def add(self, key, value):
        return self.client.add(key, value)

    def delete(self, key):
        return self.client.delete(key)

    def count(self, key):
        return self.client.incr(key, 1)

    def swap(self, key, old, new):
        found, unique = self.client.gets(key)
        assert int(found) == old, (key, found, old)
        return self.client.cas(key, str(new), unique)

    def hold(self, path):
        """Sets a value, and records it with its unique."""
        value = str(time.time_ns())
        assert self.client.set(HELD, value)
        found, unique = self.client.gets(HELD)
        assert found.decode() == value, (found, value)
        path.write_text(json.dumps([value, unique.decode()]))

    def swap_held(self, path):
        """Returns faults of a unique from before the kill: either it is the value's, and changes it once; or the value has
        changed or is gone, and stays so."""
        value, unique = json.loads(path.read_text())
        found, shown = self.client.gets(HELD)
        swapped = [self.client.cas(HELD, "swapped", unique) for _ in range(2)]
        if found is None:
            fine = swapped == [None, None]
        elif found.decode() == value:
            fine = shown.decode() == unique and swapped == [True, False]
        else:
            fine = swapped == [False, False]
        return [] if fine else [f"{HELD} is {found}, {shown}; of {value}, {unique}: {swapped}"]

    def flush(self):
        return self.client.flush_all()

    def look(self, key):
        """Returns data, flags, and no expiry, which this client cannot read."""
        head = self.client.raw_command(f"mg {key} f", end_tokens=b"\r\n")
        found = self.client.get(key)
        return None if head == b"EN" or found is None else (found.decode(), int(head.split()[1][1:]), None)


class Redis:
    name = "r"
    short = 300

    def __init__(self, port):
        self.client = redis.Redis(port=port, socket_timeout=60, retry=None)

    def get(self, key):
        return self.client.get(key)

    def set(self, key, value, flags, life):
        assert flags == 0
        return self.client.set(key, value, px=life)

    def set_many(self, values):
        pipe = self.client.pipeline(transaction=False)
        for key, value in values.items():
            pipe.set(key, value)
        return all(pipe.execute())

    def add(self, key, value):
        return self.client.set(key, value, nx=True)

    def delete(self, key):
        return self.client.delete(key) == 1

    def count(self, key):
        return self.client.incr(key)

    def swap(self, key, old, new):
        with self.client.pipeline() as pipe:
            pipe.watch(key)
            found = pipe.get(key)
            assert int(found) == old, (key, found, old)
            pipe.multi()
            pipe.set(key, new)
            return pipe.execute() == [True]

    def hold(self, path):
        """Redis has no uniques."""

    def flush(self):
        return self.client.flushall()

    def look(self, key):
        """Returns data, no flags, which this client cannot read, and the expiry; -1: never."""
        found, ends = self.client.pipeline(transaction=True).get(key).pexpiretime(key).execute()
        return None if found is None else (found.decode(), None, ends)


class Gate:
    """A lock that one client holds exclusively, or several share."""

    def __init__(self):
        self.changed, self.within, self.closed, self.flushes = threading.Condition(), 0, False, 0

    @contextlib.contextmanager
    def shared(self):
        with self.changed:
            self.changed.wait_for(lambda: not self.closed)
            self.within += 1
        try:
            yield
        finally:
            with self.changed:
                self.within -= 1
                self.changed.notify_all()

    @contextlib.contextmanager
    def alone(self):
        with self.changed:
            self.changed.wait_for(lambda: not self.closed)
            self.closed = True
            self.changed.wait_for(lambda: self.within == 0)
        try:
            yield
        finally:
            with self.changed:
                self.closed = False
                self.changed.notify_all()


class Worker:
    def __init__(self, client, ledger, held, lock, gate):
        self.client, self.ledger, self.held, self.lock, self.gate = client, ledger, held, lock, gate
        self.counter, self.number = f"{client.name}:counter", f"{client.name}:number"

    def note(self, acknowledged, key, item):
        with self.lock:
            self.ledger.write(json.dumps([acknowledged, self.client.name, key, item]) + "\n")
            self.ledger.flush()

    def do(self, key, what, data=None, flags=0, life=None):
        """Runs an operation that leaves the key with this item."""
        item = None if data is None else [data, flags, None, None]
        if life is not None:
            item[2] = now() + life
        self.note(False, key, item)
        assert what(), key
        if life is not None:
            item[3] = now() + life
        self.note(True, key, item)

    def set(self, key, flags, life):
        value = str(time.time_ns())  # unique
        self.do(key, lambda: self.client.set(key, value, flags, life), value, flags, life)

    def set_many(self, keys):
        """Sets all of them in one pipeline, twice."""
        for _ in range(2):
            values = {key: str(time.time_ns()) for key in keys}
            for key, value in values.items():
                self.note(False, key, [value, 0, None, None])
            assert self.client.set_many(values), keys
            for key, value in values.items():
                self.note(True, key, [value, 0, None, None])

    def begin(self):
        """Holds a value, sets the counter and the number to 0 if they are missing, and reads both."""
        self.flushes = self.gate.flushes
        self.client.hold(self.held)
        for key in (self.counter, self.number):
            if self.client.get(key) is None:
                self.do(key, lambda: self.client.add(key, "0"), "0")
        self.counted, self.swapped = (int(self.client.get(key)) for key in (self.counter, self.number))

    def round(self, n):
        client, name, number = self.client, self.client.name, n % KEYS
        if self.flushes != self.gate.flushes:
            self.begin()
        self.set(f"{name}:{number}", n % 1000 if name == "m" else 0, LIFE * 1000)
        self.set(f"{name}:short{number}", 0, client.short)
        self.set(f"{name}:gone{number}", 0, LIFE * 1000)
        self.do(f"{name}:gone{number}", lambda: client.delete(f"{name}:gone{number}"))
        self.set_many([f"{name}:many{number % 5}:{i}" for i in range(MANY)])
        self.counted += 1
        self.do(self.counter, lambda: client.count(self.counter) == self.counted, str(self.counted))
        old, self.swapped = self.swapped, self.swapped + 1
        self.do(self.number, lambda: client.swap(self.number, old, old + 1), str(old + 1))

    def work(self):
        with contextlib.suppress(*GONE):
            with self.gate.shared():
                self.begin()
            n = 0
            while True:
                n += 1
                with self.gate.shared():
                    self.round(n)
                if n % BETWEEN_FLUSHES == 0:
                    with self.gate.alone():
                        self.do(None, self.client.flush)
                        self.gate.flushes += 1


def replay(path):
    """Returns the possible items of each key, without and with a flush that was in progress at the end: the last item
    acknowledged, or one that was in progress after it."""
    may, flushed = {}, {}
    with open(path) as ledger:
        for line in ledger:
            acknowledged, _, key, item = json.loads(line)
            if key is None:
                if not acknowledged:
                    flushed = {key: [None] for key in may}
                may = dict(flushed) if acknowledged else may
                continue
            for one in (may, flushed):
                one[key] = [item] if acknowledged else one.get(key, [None]) + [item]
    return may, flushed


def fits(item, look, before, after):
    """Returns whether an item may have been read as `look` between the milliseconds `before` and `after`."""
    if item is None:
        return look is None
    data, flags, least, most = item
    if look is None:
        return least is not None and least <= after
    found, its_flags, ends = look
    if found != data or its_flags not in (None, flags):
        return False
    if ends is None:
        return most is None or before < most
    return ends == -1 if least is None else max(least, before + 1) <= ends <= (most or ends)


def verify(clients, path, held):
    seen = {}
    alternatives = replay(path)
    for key in alternatives[0]:
        looks = []
        for client in clients:
            before = now()
            look = client.look(key)
            looks.append((look, before, now()))
        seen[key] = looks
    wrong = []
    for may in alternatives:
        unfit = lambda key: not any(all(fits(item, *look) for look in seen[key]) for item in may[key])
        wrong.append([f"{key} is {seen[key]}, not one of {may[key]}" for key in may if unfit(key)])
    best = min(wrong, key=len) + clients[0].swap_held(held)
    print(*best[:20], f"{len(seen)} keys, {len(best)} wrong", sep="\n")
    with open(path, "a") as ledger:
        for key, ((in_memcached, _, _), (in_redis, _, _)) in seen.items():
            item = None
            if in_memcached and in_redis:
                ends = None if in_redis[2] == -1 else in_redis[2]
                item = [in_redis[0], in_memcached[1], ends, ends]
            ledger.write(json.dumps([True, "verify", key, item]) + "\n")
    return len(best)


def main():
    what, memcached, database, path = sys.argv[1:]
    clients = [Memcached(int(memcached)), Redis(int(database))]
    held = pathlib.Path(path + ".held")
    if what == "verify":
        sys.exit(verify(clients, path, held) > 0)
    lock, gate = threading.Lock(), Gate()
    failed = []
    threading.excepthook = lambda args: (failed.append(args), threading.__excepthook__(args))
    with open(path, "a") as ledger:
        workers = [Worker(client, ledger, held, lock, gate) for client in clients]
        threads = [threading.Thread(target=worker.work) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    sys.exit(len(failed) > 0)


main()

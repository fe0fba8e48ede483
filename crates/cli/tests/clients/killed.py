"""pymemcache and redis-py at work, each by itself, until the server is gone; and what they find afterwards.

    killed.py work MEMCACHED_PORT REDIS_PORT LEDGER     until the server is gone
    killed.py verify MEMCACHED_PORT REDIS_PORT LEDGER   exits with 1 where anything acknowledged is lost

The ledger has a line of JSON for each operation that begins, and one for each that is acknowledged:
[acknowledged, client, key, value]. Each client has its own keys: plain ones that live for LIFE seconds, a counter, and a
number that is only changed by compare-and-swap.
"""

import json
import sys
import threading

import pymemcache
import redis

LIFE = 1000
KEYS = 50
GONE = (OSError, EOFError, pymemcache.MemcacheError, redis.RedisError)


class Memcached:
    name = "m"

    def __init__(self, port):
        self.client = pymemcache.Client(("127.0.0.1", port), default_noreply=False, timeout=60)

    def get(self, key):
        return self.client.get(key)

    def set(self, key, value):
        return self.client.set(key, value, expire=LIFE)

    def add(self, key, value):
        return self.client.add(key, value)

    def count(self, key):
        return self.client.incr(key, 1)

    def swap(self, key, old, new):
        found, unique = self.client.gets(key)
        assert int(found) == old, (key, found, old)
        return self.client.cas(key, str(new), unique)


class Redis:
    name = "r"

    def __init__(self, port):
        self.client = redis.Redis(port=port, socket_timeout=60, retry=None)

    def get(self, key):
        return self.client.get(key)

    def set(self, key, value):
        return self.client.set(key, value, ex=LIFE)

    def add(self, key, value):
        return self.client.set(key, value, nx=True)

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


def work(client, ledger, lock):
    def note(acknowledged, key, value):
        with lock:
            ledger.write(json.dumps([acknowledged, client.name, key, value]) + "\n")
            ledger.flush()

    def do(key, value, what):
        note(False, key, value)
        assert what(), key
        note(True, key, value)

    counter, number = f"{client.name}:counter", f"{client.name}:number"
    try:
        for key in (counter, number):
            client.add(key, "0")
        counted, swapped = int(client.get(counter)), int(client.get(number))
        n = 0
        while True:
            n += 1
            # No value comes twice.
            do(f"{client.name}:{n % KEYS}", f"{counted}-{n}", lambda: client.set(f"{client.name}:{n % KEYS}", f"{counted}-{n}"))
            do(counter, str(counted + 1), lambda: client.count(counter) == counted + 1)
            counted += 1
            do(number, str(swapped + 1), lambda: client.swap(number, swapped, swapped + 1))
            swapped += 1
    except GONE:
        pass


def verify(memcached, database, path):
    # What each key may hold: the last value acknowledged, or one that was under way after it.
    may = {}
    with open(path) as ledger:
        for line in ledger:
            acknowledged, _, key, value = json.loads(line)
            if acknowledged:
                may[key] = [value]
            else:
                may.setdefault(key, ["0" if key[2].isalpha() else None]).append(value)
    wrong = 0
    for key, values in may.items():
        for found in (memcached.get(key), database.get(key)):
            found = None if found is None else found.decode()
            if found not in values:
                wrong += 1
                print(f"{key} is {found}, not one of {values}")
        left = database.client.ttl(key)
        lives = found is None or (left == -1 if key[2].isalpha() else 0 < left <= LIFE)
        if not lives:
            wrong += 1
            print(f"{key} has {left} seconds left")
    print(f"{len(may)} keys, {wrong} wrong")
    return wrong


def main():
    what, memcached, database, path = sys.argv[1:]
    clients = [Memcached(int(memcached)), Redis(int(database))]
    if what == "verify":
        sys.exit(verify(*clients, path) > 0)
    lock = threading.Lock()
    failed = []
    threading.excepthook = lambda args: (failed.append(args), threading.__excepthook__(args))
    with open(path, "a") as ledger:
        threads = [threading.Thread(target=work, args=(client, ledger, lock)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    sys.exit(len(failed) > 0)


main()

"""redis-py and pymemcache write while backups are made, and verify a pool restored from one.

    backed_up.py work MEMCACHED_PORT REDIS_PORT DIRECTORY BACKUP   makes DIRECTORY/NUMBER.backup and NUMBER.json
    backed_up.py verify MEMCACHED_PORT REDIS_PORT BOUNDS           exits with 1 if the pool is not of one such moment

Values that change together: counters of two databases, by MULTI; a number and a copy of it in another key, by MULTI and
by MSET. Also two keys that a memcached client sets one after the other, so that the first is ahead by one or none. The
bounds are the smallest and the largest value that each may have had during the backup: the last one acknowledged before
the request, and the last one begun before the end.
"""

import json
import shutil
import sys
import threading

import pymemcache
import redis

BACKUPS = 3
FILL = 5000
BETWEEN = 40


class Counter:
    """Two databases, one transaction."""

    name = "counter"

    def __init__(self, ports):
        self.client = redis.Redis(port=ports[1], socket_timeout=120)

    def step(self, n):
        pipe = self.client.pipeline(transaction=True)
        for database, key in ((0, "counter"), (3, "counter"), (0, "counters")):
            pipe.execute_command("SELECT", database)
            pipe.incr(key)
        assert pipe.execute()[1::2] == [n, n, n]

    def moment(self):
        found = self.client.mget("counter", "counters")
        pipe = self.client.pipeline(transaction=True)
        pipe.execute_command("SELECT", 3)
        pipe.get("counter")
        pipe.execute_command("SELECT", 0)
        return [int(one or 0) for one in found + [pipe.execute()[1]]]

    def fits(self, found):
        return len(set(found)) == 1


class Pair:
    """Two keys, one MSET."""

    name = "pair"

    def __init__(self, ports):
        self.client = redis.Redis(port=ports[1], socket_timeout=120)

    def step(self, n):
        assert self.client.mset({"one": n, "zwei" * (n % 50 + 1): n, "other": n})

    def moment(self):
        return [int(one or 0) for one in self.client.mget("one", "other")]

    def fits(self, found):
        return found[0] == found[1]


class Chase:
    """Two keys, one after the other."""

    name = "chase"

    def __init__(self, ports):
        self.client = pymemcache.Client(("127.0.0.1", ports[0]), default_noreply=False, timeout=120)

    def step(self, n):
        assert self.client.set("ahead", str(n), expire=1000, flags=n % 65536)
        assert self.client.set("behind", str(n))

    def moment(self):
        return [int(self.client.get(key) or 0) for key in ("ahead", "behind")]

    def fits(self, found):
        ahead, behind = found
        flags = self.client.raw_command("mg ahead f", end_tokens=b"\r\n").split()[1:]
        return 0 <= ahead - behind <= 1 and flags == [b"f%d" % (ahead % 65536)]


KINDS = (Counter, Pair, Chase)


class Worker(threading.Thread):
    def __init__(self, kind, ports, stop):
        super().__init__()
        self.worker, self.stopping = kind(ports), stop
        self.begun = self.done = 0

    def run(self):
        while not self.stopping.is_set():
            self.begun += 1
            self.worker.step(self.begun)
            self.done = self.begun


def work(ports, directory, backup):
    client = redis.Redis(port=ports[1], socket_timeout=120)
    with client.pipeline(transaction=False) as pipe:
        for i in range(FILL):
            pipe.set(f"fill:{i}", "x" * 500)
        pipe.execute()
    stop = threading.Event()
    workers = [Worker(kind, ports, stop) for kind in KINDS]
    for worker in workers:
        worker.start()
    tick = threading.Event()
    try:
        for number in range(BACKUPS):
            wanted = [worker.done + BETWEEN for worker in workers]
            while any(worker.done < done for worker, done in zip(workers, wanted)):
                assert all(worker.is_alive() for worker in workers), "a client had a wrong answer"
                tick.wait(0.005)
            bounds = {worker.worker.name: [worker.done] for worker in workers}
            assert client.bgsave()
            try:
                client.bgsave()
            except redis.ResponseError as why:
                assert "already in progress" in str(why), why
            while client.info("persistence")["rdb_bgsave_in_progress"]:
                tick.wait(0.001)
            for worker in workers:
                bounds[worker.worker.name].append(worker.begun)
            assert client.info("persistence")["rdb_last_bgsave_status"] == "ok"
            shutil.copy(backup, f"{directory}/{number}.backup")
            with open(f"{directory}/{number}.json", "w") as file:
                json.dump(bounds, file)
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def verify(ports, path):
    with open(path) as file:
        bounds = json.load(file)
    wrong = 0
    for kind in KINDS:
        worker = kind(ports)
        found, (least, most) = worker.moment(), bounds[kind.name]
        # The second value may be behind by one.
        if not worker.fits(found) or not least <= found[0] <= most:
            wrong += 1
            print(f"{kind.name} is {found}, and was between {least} and {most}")
    client = redis.Redis(port=ports[1])
    filled = client.mget([f"fill:{i}" for i in range(FILL)])
    if any(value != b"x" * 500 for value in filled):
        wrong += 1
        print("a key that was present throughout is missing")
    return wrong


def main():
    what, ports = sys.argv[1], [int(port) for port in sys.argv[2:4]]
    if what == "verify":
        sys.exit(verify(ports, sys.argv[4]) > 0)
    failed = []
    threading.excepthook = lambda args: (failed.append(args), threading.__excepthook__(args))
    work(ports, *sys.argv[4:])
    sys.exit(len(failed) > 0)


main()

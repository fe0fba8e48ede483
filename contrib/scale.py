#!/usr/bin/env python3
"""Several servers side by side: behind a proxy, with clients that divide the keys, and a simulated cluster of nodes.

    python3 contrib/scale.py proxies target/release/wollemi
    python3 contrib/scale.py hits target/release/wollemi --plot hits.svg
    python3 contrib/scale.py crashes

`proxies` sets and reads values through nutcracker (both protocols), pymemcache's HashClient, libmemcached's ketama
(pylibmc) and redis-py, kills the servers with SIGKILL one after the other under load, restarts each at once on its
pool, and checks every acknowledged write. `hits` measures the hit rate of a cache while one server is killed and restarted,
beside memcached. `crashes` simulates crashes of a cluster's nodes. docs/scale.md has the results.

Only Python's standard library is required; missing clients and programs are skipped and named. Servers listen on a
random loopback address, have their files in a directory that is removed, and end with this program.
"""

import argparse
import collections
import contextlib
import getpass
import itertools
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

try:
    import pymemcache
except ImportError:
    pymemcache = None
try:
    import pylibmc
except ImportError:
    pylibmc = None
try:
    import redis
except ImportError:
    redis = None

# No other program has sockets there: a port stays free while its server is down.
HOST = f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
CHUNK = 500
TIMEOUT = 10
# Seconds of writing between two kills.
BETWEEN = 0.5


def free_port():
    with socket.socket() as any_port:
        any_port.bind((HOST, 0))
        return any_port.getsockname()[1]


class Server:
    """A process that listens at a port, and can be restarted there."""

    def __init__(self, directory, name, port, command):
        self.name, self.port, self.command, self.log = name, port, command, Path(directory, f"{name}.log")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        """Waits until it accepts connections."""
        with open(self.log, "ab") as log:
            try:
                self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            except OSError as failed:
                sys.exit(f"{self.command[0]}: {failed.strerror}")
        try:
            while self.process.poll() is None:
                with contextlib.suppress(ConnectionRefusedError):
                    return socket.create_connection((HOST, self.port), TIMEOUT).close()
                time.sleep(0.0002)
        except BaseException:
            self.kill()
            raise
        sys.exit(f"{self.name} has ended with {self.process.returncode}: {self.log.read_text()[-500:]}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def held(self, keys):
        """Returns its values of the keys, read in memcached's protocol without a client library or a proxy."""
        found = {}
        with socket.create_connection((HOST, self.port), TIMEOUT) as client:
            answers = client.makefile("rb")
            for some in chunks(keys):
                client.sendall(f"get {' '.join(some)}\r\n".encode())
                while (line := answers.readline().split()) != [b"END"]:
                    found[line[1].decode()] = answers.read(int(line[3]))
                    answers.readline()
        return found


def wollemi(program, directory, name):
    port, redis_port = free_port(), free_port()
    listen = ["--memcached", f"{HOST}:{port}", "--redis", f"{HOST}:{redis_port}"]
    server = Server(directory, name, port, [program, "serve", "--pool", f"{directory}/{name}.pool", *listen])
    server.redis_port = redis_port
    return server


def memcached(directory, name):
    port = free_port()
    command = ["memcached", "-u", getpass.getuser(), "-l", HOST, "-p", str(port), "-U", "0", "-m", "2048"]
    return Server(directory, name, port, command)


def nutcracker(directory, servers):
    """Starts a proxy with a port for each protocol; for Redis's only if the servers support it."""
    pools = {"memcached": [server.port for server in servers]}
    if all(hasattr(server, "redis_port") for server in servers):
        pools["redis"] = [server.redis_port for server in servers]
    ports = {protocol: free_port() for protocol in pools}
    text = ""
    for protocol, backs in pools.items():
        text += f"{protocol}:\n  listen: {HOST}:{ports[protocol]}\n  hash: murmur\n  distribution: ketama\n"
        text += f"  auto_eject_hosts: false\n  timeout: {TIMEOUT * 1000}\n  redis: {json.dumps(protocol == 'redis')}\n  servers:\n"
        text += "".join(f"   - {HOST}:{port}:1 {server.name}\n" for server, port in zip(servers, backs))
    configuration = Path(directory, "nutcracker.yml")
    configuration.write_text(text)
    command = [find_nutcracker(), "-c", str(configuration), "-p", f"{directory}/nutcracker.pid", "-o", f"{directory}/nutcracker.out"]
    proxy = Server(directory, "nutcracker", ports["memcached"], [*command, "-a", HOST, "-s", str(free_port())])
    proxy.redis_port = ports.get("redis")
    return proxy


def find_nutcracker():
    return shutil.which("nutcracker", path=os.environ.get("PATH", "") + ":/usr/sbin")


def chunks(keys):
    keys = list(keys)
    return [keys[at : at + CHUNK] for at in range(0, len(keys), CHUNK)]


# Clients, and the failures of each. None moves a server's keys to other servers while it is down: it will be back.


class Way:
    """A client of all servers, with functions that set a key and get many."""

    def __init__(self, name, failures, set, get_many):
        self.name, self.failures, self.set, self.get_many = name, failures, set, get_many


def by_pymemcache(name, client):
    return Way(name, (OSError, pymemcache.MemcacheError), client.set, client.get_many)


def proxied(port):
    return pymemcache.Client((HOST, port), default_noreply=False, timeout=TIMEOUT)


def hashing(servers):
    addresses = [(HOST, server.port) for server in servers]
    never = {"retry_attempts": 1 << 60, "retry_timeout": 0}
    return pymemcache.HashClient(addresses, default_noreply=False, timeout=TIMEOUT, **never)


def by_redis(name, ports):
    """redis-py with a client for each port, which the key's checksum chooses."""
    # nutcracker closes a connection that sends a client name.
    silent = {"driver_info": None} if hasattr(redis, "DriverInfo") else {"lib_name": None, "lib_version": None}
    plain = {"protocol": 2, "socket_timeout": TIMEOUT, "retry": None, **silent}
    clients = [redis.Redis(HOST, port, **plain) for port in ports]

    def of(key):
        return zlib.crc32(key.encode()) % len(clients)

    def get_many(keys):
        found = {}
        for at, client in enumerate(clients):
            own = [key for key in keys if of(key) == at]
            found.update(zip(own, client.mget(own) if own else []))
        return found

    return Way(name, (OSError, redis.RedisError), lambda key, value: clients[of(key)].set(key, value), get_many)


def ways(servers, proxy):
    """Returns all installed clients, and the reasons for the missing ones."""
    found, left_out = [], []

    def one(name, missing, make):
        left_out.append(f"{name}: {missing}") if missing else found.append(make(name))

    missing = {name: None if module else f"{name} is not installed" for name, module in
               [("pymemcache", pymemcache), ("pylibmc", pylibmc), ("redis", redis)]}  # fmt: skip
    no_proxy = None if proxy else "nutcracker is not installed"
    one("nutcracker, pymemcache", no_proxy or missing["pymemcache"], lambda name: by_pymemcache(name, proxied(proxy.port)))
    one("nutcracker, redis-py", no_proxy or missing["redis"], lambda name: by_redis(name, [proxy.redis_port]))
    one("pymemcache's HashClient", missing["pymemcache"], lambda name: by_pymemcache(name, hashing(servers)))
    one("redis-py, by checksum", missing["redis"], lambda name: by_redis(name, [server.redis_port for server in servers]))

    def ketama(name):
        addresses = [f"{HOST}:{server.port}" for server in servers]
        client = pylibmc.Client(addresses, behaviors={"ketama": True, "retry_timeout": 1})
        return Way(name, (pylibmc.Error,), client.set, client.get_multi)

    one("libmemcached's ketama", missing["pylibmc"], ketama)
    return found, left_out


class Writer(threading.Thread):
    """Sets one key after the other, cyclically, and knows the possible values of each."""

    def __init__(self, way, number, keys):
        super().__init__(daemon=True)
        self.way, self.keys = way, [f"{number}:{n}" for n in range(keys)]
        # The last acknowledged value, and those sent after it.
        self.may = {key: [None] for key in self.keys}
        self.acknowledged = self.failed = 0
        self.stop, self.go = threading.Event(), threading.Event()
        self.go.set()
        self.awaited, self.back_at, self.back_ms = frozenset(), None, []

    def rest_after(self, keys):
        """Pauses it after one of these keys has been written, so that the other keys have earlier values."""
        self.back_at, self.awaited = None, frozenset(keys)

    def run(self):
        for number, key in zip(itertools.count(), itertools.cycle(self.keys)):
            self.go.wait()
            if self.stop.is_set():
                return
            value, awaited = b"%d" % number, key in self.awaited
            self.may[key].append(value)
            try:
                stored = self.way.set(key, value)
            except self.way.failures:
                stored = False
            if not stored:
                self.failed += 1
                time.sleep(0.001)
                continue
            self.may[key] = [value]
            self.acknowledged += 1
            if awaited:
                self.awaited = frozenset()
                self.go.clear()
                self.back_at = time.monotonic()


def wrong_now(servers, writers):
    """Returns differences from acknowledged values, at the servers or through the clients, while the writers pause."""
    held = [server.held(key for writer in writers for key in writer.keys) for server in servers]
    together = {key: value for one in held for key, value in one.items()}
    wrong = [] if sum(map(len, held)) == len(together) else ["a key is at two servers"]
    for writer in writers:
        seen = {key: value for some in chunks(writer.keys) for key, value in writer.way.get_many(some).items()}
        for key, may in writer.may.items():
            if together.get(key) not in may:
                wrong.append(f"{writer.way.name}: {key} is {together.get(key)}, not one of {may}")
            elif seen.get(key) != together.get(key):
                wrong.append(f"{writer.way.name}: {key} is {together.get(key)}, and seen as {seen.get(key)}")
    return wrong


def until(what):
    while not what():
        time.sleep(0.002)


def proxies(args):
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(dir=args.dir))
        servers = [stack.enter_context(wollemi(args.program, directory, f"s{n}")) for n in range(3)]
        proxy = stack.enter_context(nutcracker(directory, servers)) if find_nutcracker() else None
        found, left_out = ways(servers, proxy)
        if not found:
            sys.exit("nothing was tested: no client is installed (pip install pymemcache pylibmc redis)")
        writers = [Writer(way, number, args.keys) for number, way in enumerate(found)]
        for writer in writers:
            writer.start()
        until(lambda: all(writer.acknowledged >= args.keys for writer in writers))
        owned = [{writer: list(server.held(writer.keys)) for writer in writers} for server in servers]
        wrong = []
        for server, own in itertools.islice(itertools.cycle(zip(servers, owned)), args.kills):
            killed = time.monotonic()
            server.kill()
            for writer in writers:
                writer.rest_after(own[writer])
            server.start()
            until(lambda: all(writer.back_at for writer in writers))
            wrong += wrong_now(servers, writers)
            for writer in writers:
                writer.back_ms.append((writer.back_at - killed) * 1e3)
                writer.go.set()
            time.sleep(BETWEEN)
        for writer in writers:
            writer.stop.set()
            writer.join()
    told = {
        "kills": args.kills,
        "ways": [
            {
                "way": writer.way.name,
                "keys_by_server": [len(own[writer]) for own in owned],
                "acknowledged": writer.acknowledged,
                "failed": writer.failed,
                "back_ms": [round(ms, 1) for ms in writer.back_ms],
            }
            for writer in writers
        ],
        "left_out": left_out,
        "wrong": wrong,
    }
    if args.json:
        print(json.dumps(told))
    else:
        print(f"{'client':26}{'keys by server':>18}{'acknowledged':>14}{'failed':>8}   ms from a kill to an answer for its keys")
        for way in told["ways"]:
            by_server = "/".join(map(str, way["keys_by_server"]))
            spread = f"{statistics.median(way['back_ms']):.0f} ({min(way['back_ms']):.0f}–{max(way['back_ms']):.0f})"
            print(f"{way['way']:26}{by_server:>18}{way['acknowledged']:14}{way['failed']:8}   {spread}")
        print(*[f"left out: {what}" for what in left_out], *wrong[:20], f"{args.kills} kills, {len(wrong)} wrong", sep="\n")
    return len(wrong) > 0


# The hit rate of a cache while one of three servers is killed and restarted.

WINDOW = 0.5


class Reader(threading.Thread):
    """Requests keys at a steady rate, by Zipf's law, and stores those that it misses."""

    def __init__(self, client, args, seed):
        super().__init__(daemon=True)
        self.way, self.rate = by_pymemcache("", client), args.rate
        weights = itertools.accumulate(1 / rank**args.zipf for rank in range(1, args.keys + 1))
        count = int(args.rate * (args.before + args.after))
        self.drawn = random.Random(seed).choices(range(args.keys), cum_weights=list(weights), k=count)
        self.windows = [collections.Counter() for _ in range(round((args.before + args.after) / WINDOW))]

    def run(self):
        for number, item in enumerate(self.drawn):
            if (early := self.began + number / self.rate - time.monotonic()) > 0.0005:
                time.sleep(early)
            window = int((time.monotonic() - self.began) / WINDOW)
            self.windows[min(window, len(self.windows) - 1)][self.ask(f"item:{item}")] += 1

    def ask(self, key):
        try:
            if key in self.way.get_many([key]):
                return "hits"
            return "misses" if self.way.set(key, VALUE) else "failed"
        except self.way.failures:
            return "failed"


VALUE = b"v" * 200


def one_run(make, kind, seed, args):
    """Runs one round of one kind of server; returns the outcomes of the requests of each window."""
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(dir=args.dir))
        servers = [stack.enter_context(make(directory, f"s{n}")) for n in range(3)]
        proxy = stack.enter_context(nutcracker(directory, servers)) if find_nutcracker() else None
        client = proxied(proxy.port) if proxy else hashing(servers)
        for some in chunks(f"item:{item}" for item in range(args.keys)):
            if client.set_many(dict.fromkeys(some, VALUE)):
                sys.exit(f"{kind}: a set was refused")
        reader = Reader(client, args, seed)
        killed = servers[seed % 3]
        own = {int(key.split(":")[1]) for key in killed.held(f"item:{item}" for item in range(args.keys))}
        reader.began = time.monotonic()
        reader.start()
        time.sleep(args.before)
        begin = time.monotonic()
        killed.kill()
        killed.start()
        down = time.monotonic() - begin
        reader.join()
    after = sum(reader.windows[killed_in(args) :], collections.Counter())
    return {
        "server": kind,
        "seed": seed,
        "killed": killed.name,
        "asked_of_the_killed": sum(item in own for item in reader.drawn) / len(reader.drawn),
        "down_ms": down * 1e3,
        "misses": after["misses"],
        "failed": after["failed"],
        # None if the client made no request, on a busy machine.
        "hit_rate": [round(window["hits"] / sum(window.values()), 4) if window else None for window in reader.windows],
    }


def killed_in(args):
    """Returns the window in which the server is killed."""
    return int(args.before / WINDOW)


def hits(args):
    left_out = [] if find_nutcracker() else ["nutcracker is not installed: pymemcache's HashClient divides the keys instead"]
    if not pymemcache:
        print("left out: all of it: pymemcache is not installed")
        return 0
    kinds = {"wollemi": lambda *where: wollemi(args.program, *where)}
    if shutil.which("memcached"):
        kinds["memcached"] = memcached
    else:
        left_out.append("memcached is not installed")
    runs = [one_run(make, kind, seed, args) for seed in range(args.rounds) for kind, make in kinds.items()]
    if args.plot:
        try:
            draw(args, runs)
        except ImportError as missing:
            left_out.append(f"the plot: {missing}")
    if args.json:
        print(json.dumps({"window_s": WINDOW, "killed_at_s": args.before, "left_out": left_out, "runs": runs}))
        return 0
    at = [second for second in [0, 0.5, 1, 2, 5, 10, 20, 30, 60, 120] if second < args.after]
    head = "".join(f"{f'{second:g} s':>7}" for second in at)
    print(f"hit rate in %, in the half second that begins so long after the kill\n{'server':11}{'before':>7}{head}   misses  failed  down ms  its share")
    for run in runs:
        rates = [run["hit_rate"][killed_in(args) - 1]] + [run["hit_rate"][killed_in(args) + int(s / WINDOW)] for s in at]
        cells = "".join(f"{'–':>7}" if rate is None else f"{rate * 100:7.1f}" for rate in rates)
        share = run["asked_of_the_killed"] * 100
        print(f"{run['server']:11}{cells}{run['misses']:9}{run['failed']:8}{run['down_ms']:9.1f}{share:9.1f} %")
    print(*[f"left out: {what}" for what in left_out], sep="\n", end="\n" if left_out else "")
    return 0


def draw(args, runs):
    """Draws the hit rates as SVG, in the style of lab/figures."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "lab/figures"))
    import plots  # it requires matplotlib

    figure, axes = plots.pyplot.subplots(figsize=(plots.WIDTH, plots.HEIGHT), layout="constrained")
    for colour, kind in zip(plots.COLOURS, dict.fromkeys(run["server"] for run in runs)):
        rounds = [run["hit_rate"] for run in runs if run["server"] == kind]
        windows = [[rate * 100 for rate in rates if rate is not None] for rates in zip(*rounds)]
        x = [(window + 0.5) * WINDOW - args.before for window, rates in enumerate(windows) if rates]
        windows = [rates for rates in windows if rates]
        axes.fill_between(x, list(map(min, windows)), list(map(max, windows)), color=colour, alpha=0.2, lw=0)
        axes.plot(x, list(map(statistics.median, windows)), color=colour, label=kind, lw=1.2)
    axes.set_ylim(0, 103)
    axes.set_xlabel("seconds since one of three servers was killed")
    axes.set_ylabel("hit rate, %")
    plots.legend(figure, axes, 2)
    figure.suptitle("The hit rate of a cache when a server is killed", x=0.02, ha="left", fontsize=9.5)
    note = f"Lines: medians of {args.rounds} rounds; bands: min to max."
    figure.text(0.02, -0.03, note, fontsize=7.5, color="#666666", va="top")
    metadata = {"Date": None, "Title": "hit rate over time"}
    figure.savefig(args.plot, format="svg", bbox_inches="tight", pad_inches=0.06, metadata=metadata)


# A simulated cluster: every node crashes once, one after the other, at random moments.


def without_quorum(down, replicas):
    """Returns the range-seconds in which fewer than a majority of a range's nodes are up. A range is on
    consecutive nodes, so with racks in turn each of its nodes is in another rack."""
    spare = replicas - (replicas // 2 + 1)
    seconds = 0
    for first in range(len(down)):
        spans = [down[(first + n) % len(down)] for n in range(replicas)]
        changes = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
        now_down, since = 0, 0
        for at, change in changes:
            seconds += (at - since) if now_down > spare else 0
            now_down, since = now_down + change, at
    return seconds


def one_pass(args, replay, seed):
    """Returns the cost of a pass of crashes. A node replays the log of unflushed rows at that rate; None: adopts them."""
    draw = random.Random(seed)
    at, down, cost = 0, {}, collections.Counter()
    for node in draw.sample(range(args.nodes), args.nodes):
        at += draw.expovariate(1 / args.every)
        unflushed = draw.uniform(0, args.unflushed)
        replaying = unflushed / replay if replay else 0
        seconds = args.start + (replaying if replay else args.adopt)
        hints = args.writes * min(seconds, args.hint_window)
        down[node] = (at, at + seconds)
        cost.update({
            "log to replay, MiB": unflushed if replay else 0,
            "replaying, node-seconds": replaying,
            "down, node-seconds": seconds,
            "hints, MiB": hints,
            "up and behind, node-seconds": hints / args.throttle,
        })  # fmt: skip
        cost["longest time down, s"] = max(cost["longest time down, s"], seconds)
    cost["ranges without a quorum, range-seconds"] = without_quorum(down, args.replicas)
    return cost


def crashes(args):
    kinds = {"log": args.replay, "instant": 0}
    passes = {kind: [one_pass(args, replay, seed) for seed in range(args.rounds)] for kind, replay in kinds.items()}
    told = {
        what: {
            kind: {"median": statistics.median(values), "least": min(values), "most": max(values)}
            for kind in kinds
            for values in [[cost[what] for cost in passes[kind]]]
        }
        for what in passes["log"][0]
    }
    if args.json:
        inputs = {name: value for name, value in vars(args).items() if name not in ("run", "json", "limit")}
        print(json.dumps({"inputs": inputs, "costs": told}))
        return 0
    print(f"{args.nodes} nodes, each crashes once: medians of {args.rounds} passes (least–most)")
    print(f"{'':40}{'with a log':>26}{'instant restart':>26}")
    for what, by_kind in told.items():
        cells = [f"{c['median']:,.0f} ({c['least']:,.0f}–{c['most']:,.0f})" for c in by_kind.values()]
        print(f"{what:40}" + "".join(f"{cell:>26}" for cell in cells))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one object")
    common.add_argument("--limit", type=int, default=900, metavar="SECONDS", help="give up after this time [default: 900]")
    some = argparse.ArgumentParser(add_help=False, parents=[common])
    some.add_argument("program", help="the wollemi to start")
    some.add_argument("--dir", help="directory for the pools [default: the system's temporary directory]")

    command = commands.add_parser("proxies", parents=[some], help="is every acknowledged write present after kills?")
    command.add_argument("--kills", type=int, default=9, help="number of kills, of each server in turn [default: 9]")
    command.add_argument("--keys", type=int, default=1000, help="number of keys of each client [default: 1000]")
    command.set_defaults(run=proxies)

    command = commands.add_parser("hits", parents=[some], help="the hit rate when a server is killed, beside memcached's")
    command.add_argument("--keys", type=int, default=100_000, help="number of keys in the cache [default: 100000]")
    command.add_argument("--rate", type=int, default=2000, help="requests per second [default: 2000]")
    command.add_argument("--zipf", type=float, default=0.99, help="exponent of the keys' distribution [default: 0.99]")
    command.add_argument("--before", type=float, default=10, metavar="SECONDS", help="time until the kill [default: 10]")
    command.add_argument("--after", type=float, default=60, metavar="SECONDS", help="time after the kill [default: 60]")
    command.add_argument("--rounds", type=int, default=3, help="rounds, each with another server killed [default: 3]")
    command.add_argument("--plot", metavar="FILE", help="plot the result as SVG (requires matplotlib)")
    command.set_defaults(run=hits)

    command = commands.add_parser("crashes", parents=[common], help="the cost of node crashes, with a log and without")
    for name, default, what in [
        ("nodes", 100, "nodes, each of which crashes once"),
        ("replicas", 3, "nodes that store a row"),
        ("every", 60.0, "mean seconds between two crashes"),
        ("writes", 5.0, "MiB per second written to a node, as one of the replicas"),
        ("unflushed", 1024.0, "maximum MiB that a node has not flushed when it crashes; uniform from 0"),
        ("start", 20.0, "seconds that a node's start takes, with nothing to replay"),
        ("replay", 22.0, "MiB of its log that a node replays per second"),
        ("adopt", 0.6, "additional seconds of a node's start with pools to adopt"),
        ("throttle", 1.0, "MiB of hints per second that all other nodes together send to a node"),
        ("hint-window", 10800.0, "seconds for which hints are kept for a node that is down"),
        ("rounds", 100, "passes, each with its own random moments"),
    ]:
        command.add_argument(f"--{name}", type=type(default), default=default, metavar="N", help=f"{what} [default: {default:g}]")
    command.set_defaults(run=crashes)
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"not done after {args.limit} s"))
    signal.alarm(args.limit)
    sys.exit(args.run(args))


if __name__ == "__main__":
    main()

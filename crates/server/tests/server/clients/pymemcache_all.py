"""Uses everything pymemcache offers against a memcached server; fails on a wrong answer.

    pymemcache_all.py HOST PORT
"""

import sys
import time

from pymemcache.client.base import Client, PooledClient
from pymemcache.exceptions import MemcacheClientError, MemcacheIllegalInputError, MemcacheServerError
from pymemcache.serde import pickle_serde

server = (sys.argv[1], int(sys.argv[2]))
client = Client(server, default_noreply=False)


def refused(error, call, *arguments):
    try:
        call(*arguments)
    except error:
        return True
    return False


# Storing.
assert client.set("a", "1") is True
assert client.get("a") == b"1"
assert client.get("missing") is None
assert client.get("missing", "default") == "default"
assert client.add("a", "2") is False
assert client.add("b", "2") is True
assert client.replace("b", "3") is True
assert client.replace("missing", "3") is False
assert client.append("b", "4") is True
assert client.prepend("b", "2") is True
assert client.get("b") == b"234"
assert client.append("missing", "x") is False
assert client.set("empty", b"") is True and client.get("empty") == b""
assert client.set("binary", bytes(range(256)) * 10) is True
assert client.get("binary") == bytes(range(256)) * 10
assert client.set("lines", b"END\r\nVALUE a 0 1\r\n") is True and client.get("lines") == b"END\r\nVALUE a 0 1\r\n"
assert client.set("k" * 250, "long") is True and client.get("k" * 250) == b"long"
assert refused(MemcacheIllegalInputError, client.set, "k" * 251, "x")

# Values at and above the limit; the connection continues after a refusal.
large = b"x" * (1 << 20)
assert client.set("large", large) is True and client.get("large") == large
assert refused(MemcacheServerError, client.set, "large", large + b"x")
client.close()
assert client.get("large") is None

# Uniques.
value, unique = client.gets("a")
assert value == b"1"
assert client.cas("a", "2", unique) is True
assert client.cas("a", "3", unique) is False
assert client.cas("missing", "3", unique) is None
assert client.gets("missing") == (None, None)

# Numbers.
assert client.set("n", "10") is True
assert client.incr("n", 5) == 15
assert client.decr("n", 6) == 9
assert client.get("n") == b"9 "
assert client.decr("n", 100) == 0
assert client.incr("missing", 1) is None
assert client.set("n", str(2**64 - 1)) is True and client.incr("n", 2) == 1
assert client.set("n", "word") is True and refused(MemcacheClientError, client.incr, "n", 1)

# Many keys.
many = {f"many:{i}": f"value {i}".encode() for i in range(2000)}
assert client.set_many(many) == []
assert client.get_many(list(many)) == many
assert set(client.gets_many(["many:1", "many:2", "missing"])) == {"many:1", "many:2"}
assert client.delete_many(list(many)) is True
assert client.get_many(list(many)) == {}

# Lifetimes.
assert client.set("short", "x", expire=2) is True
assert client.set("long", "x", expire=2000) is True
assert client.touch("a", 2000) is True and client.touch("missing", 2000) is False
assert client.raw_command("gat 2000 a", "END\r\n") == b"VALUE a 0 1\r\n2\r\n"
assert client.set("never", "x", expire=-1) is True and client.get("never") is None
time.sleep(2.1)
assert client.get("short") is None and client.get("long") == b"x"
assert client.get("a") == b"2"

# Without waiting for answers.
for i in range(1000):
    client.set(f"quiet:{i}", str(i), noreply=True)
assert client.get("quiet:999") == b"999"
client.delete("quiet:999", noreply=True)
assert client.get("quiet:999") is None
assert client.delete("quiet:998") is True and client.delete("quiet:998") is False

# Flags, which tell the client how it has serialized the value.
objects = Client(server, serde=pickle_serde, default_noreply=False)
thing = {"list": [1, 2.5, None], "text": "ünï"}
assert objects.set("object", thing) is True and objects.get("object") == thing
assert objects.set("number", 12345) is True and objects.get("number") == 12345

# A pool of connections.
pool = PooledClient(server, max_pool_size=4, default_noreply=False)
for i in range(100):
    assert pool.set(f"pool:{i}", str(i)) is True
assert len(pool.get_many([f"pool:{i}" for i in range(100)])) == 100

# The rest.
assert client.version()
stats = client.stats()
assert stats[b"pointer_size"] == 64 and stats[b"cmd_set"] > 3000 and stats[b"curr_connections"] >= 3
assert client.cache_memlimit(1024) is True
assert client.flush_all() is True
assert client.get("a") is None
assert client.set("a", "after") is True and client.get("a") == b"after"
client.quit()
print("pymemcache: all as expected")

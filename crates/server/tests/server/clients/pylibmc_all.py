"""Checks a memcached server with pylibmc: pylibmc_all.py HOST:PORT"""

import sys

import pylibmc

client = pylibmc.Client([sys.argv[1]], behaviors={"cas": True, "tcp_nodelay": True})

# Values of several types, which the flags distinguish.
for value in ["text", b"bytes\r\n\0", 42, -1, 1.5, None, ["a", {"b": (1, 2)}], "x" * 500_000]:
    assert client.set("key", value)
    got = client.get("key", "absent")
    assert (type(got), got) == (type(value), value), (value, got)
# The client itself returns a boolean as a number.
assert client.set("key", True)
assert client.get("key") == 1
assert client.get("nothing") is None
assert client.get("nothing", "default") == "default"
assert client.set("compressed", "x" * 100_000, min_compress_len=1000)
assert client.get("compressed") == "x" * 100_000

# Conditions.
assert not client.add("key", "other")
assert client.add("new", "one")
assert client.replace("new", "two")
assert not client.replace("nothing", "x")
assert client.append("new", "-three")
assert client.prepend("new", "one-")
assert client.get("new") == "one-two-three"

# Many at once.
many = {f"many-{i}": i for i in range(1000)}
assert client.set_multi(many) == []
assert client.get_multi([*many, "nothing"]) == many
assert client.get_multi(["1", "2"], key_prefix="many-") == {"1": 1, "2": 2}
assert client.incr_multi(["many-1", "many-2"], delta=10) is None
assert client.get_multi(["many-1", "many-2"]) == {"many-1": 11, "many-2": 12}
assert client.delete_multi(list(many))
assert client.get_multi(list(many)) == {}

# Counting.
assert client.set("count", 10)
assert client.incr("count") == 11
assert client.incr("count", 100) == 111
assert client.decr("count", 112) == 0
for count in [client.incr, client.decr]:
    try:
        count("nothing")
        raise AssertionError("an absent key was counted")
    except pylibmc.NotFound:
        pass

# Compare and swap.
value, unique = client.gets("new")
assert value == "one-two-three"
assert client.cas("new", "swapped", unique)
assert not client.cas("new", "late", unique)
assert client.get("new") == "swapped"
assert client.gets("nothing") == (None, None)

# Lifetimes.
assert client.set("short", "x", time=1000)
assert client.touch("short", 2000)
assert not client.touch("nothing", 1)
assert client.set("gone", "x")
assert client.touch("gone", 3_000_000)  # Beyond 30 days, so an absolute time: in February 1970.
assert client.get("gone") is None

assert client.delete("new")
assert not client.delete("new")
(_, stats), = client.get_stats()
assert int(stats["curr_items"]) > 0, stats
assert client.flush_all()
assert client.get("key") is None
client.disconnect_all()
# The client reconnects.
assert client.get("key") is None

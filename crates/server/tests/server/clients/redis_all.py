"""Uses redis-py's functions for strings and keys against a server; fails on a wrong answer.

    redis_all.py HOST PORT PROTOCOL
"""

import sys
import threading

import redis

host, port, protocol = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
client = redis.Redis(host=host, port=port, protocol=protocol, client_name="tester")


def refused(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except redis.ResponseError as error:
        return str(error)
    return None


assert client.flushall() is True
assert client.ping() is True
assert client.echo("hello") == b"hello"
assert client.client_getname() in ("tester", b"tester")
assert client.client_id() > 0
assert any(entry["name"] == "tester" for entry in client.client_list())
assert client.client_info()["lib-name"].startswith("redis-py")

# Strings.
assert client.set("a", "1") is True and client.get("a") == b"1"
assert client.get("missing") is None
assert client.set("a", "2", nx=True) is None and client.set("b", "2", xx=True) is None
assert client.set("a", "3", get=True) == b"1"
assert client.setnx("a", "x") is False and client.setnx("b", "x") is True
assert client.getset("a", "4") == b"3" and client.getdel("b") == b"x" and client.getdel("b") is None
assert client.append("a", "56") == 3 and client.strlen("a") == 3
assert client.getrange("a", 1, -1) == b"56" and client.setrange("a", 5, "z") == 6
assert client.get("a") == b"456\0\0z"
assert client.incr("n") == 1 and client.incrby("n", 9) == 10 and client.decr("n") == 9 and client.decrby("n", 4) == 5
assert client.incrbyfloat("n", "0.5") == 5.5
assert refused(client.incr, "n") == "value is not an integer or out of range"
assert client.mset({"x": "1", "y": "2"}) is True and client.mget("x", "missing", "y") == [b"1", None, b"2"]
assert client.msetnx({"x": "9", "z": "9"}) is False and client.get("z") is None
binary = bytes(range(256)) * 1000
assert client.set(binary[:300], binary) is True and client.get(binary[:300]) == binary

# Times.
assert client.set("t", "x", ex=10_000) is True and 9000 <= client.ttl("t") <= 10_000
assert client.expire("t", 20_000, gt=True) is True and client.expire("t", 10_000, gt=True) is False
assert 19_000_000 < client.pttl("t") <= 20_000_000
assert client.set("t", "y", keepttl=True) is True and client.ttl("t") > 10_000
assert client.persist("t") is True and client.ttl("t") == -1 and client.ttl("missing") == -2
assert client.getex("t", px=50_000) == b"y" and client.pexpiretime("t") > 0
assert client.expire("t", -1) is True and client.exists("t") == 0

# Keys.
assert client.delete("x", "y", "missing") == 2 and client.unlink("n") == 1
assert client.type("a") == b"string" and client.type("missing") == b"none"
assert client.rename("a", "c") is True and client.get("a") is None
assert refused(client.rename, "missing", "d") == "no such key"
assert client.randomkey() is not None
client.flushdb()
assert client.dbsize() == 0 and client.randomkey() is None
for i in range(500):
    client.set(f"key:{i:03}", str(i))
assert client.dbsize() == 500
assert sorted(client.scan_iter(match="key:*", count=37)) == [b"key:%03d" % i for i in range(500)]
assert sorted(client.keys("key:00?")) == [b"key:%03d" % i for i in range(10)]
assert client.execute_command("KRANGE", "[key:100", "(key:103") == [b"key:100", b"key:101", b"key:102"]
assert client.execute_command("KRANGE", "+", "-", "REV", "LIMIT", 1) == [b"key:499"]
assert client.execute_command("KPREFIX", "key:49", "LIMIT", 2) == [b"key:490", b"key:491"]

# Databases.
other = redis.Redis(host=host, port=port, protocol=protocol, db=5)
assert other.get("key:001") is None and other.set("key:001", "other") is True
assert client.get("key:001") == b"1" and other.dbsize() == 1
assert client.info("keyspace")["db5"]["keys"] == 1
assert client.flushall() is True and other.dbsize() == 0

# Transactions.
with client.pipeline() as pipe:
    assert pipe.set("m", "1").incr("m").get("m").execute() == [True, 2, b"2"]
with client.pipeline() as pipe:
    pipe.watch("m")
    other_client = redis.Redis(host=host, port=port)
    other_client.set("m", "changed")
    pipe.multi()
    pipe.set("m", "lost")
    try:
        pipe.execute()
        raise SystemExit("a transaction over a changed key")
    except redis.WatchError:
        pass
assert client.get("m") == b"changed"


def count():
    mine = redis.Redis(host=host, port=port, protocol=protocol)
    for _ in range(50):
        mine.transaction(lambda pipe: (n := int(pipe.get("sum") or 0), pipe.multi(), pipe.set("sum", n + 1)), "sum")


threads = [threading.Thread(target=count) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert client.get("sum") == b"200"

# Many commands at once, in both directions.
with client.pipeline(transaction=False) as pipe:
    for i in range(5000):
        pipe.set(f"p{i}", i).get(f"p{i}")
    answers = pipe.execute()
assert answers[1::2] == [b"%d" % i for i in range(5000)]

# A lock: taken, extended, and released only by its holder.
lock = client.lock("lock", timeout=10, blocking=False)
assert lock.acquire() and client.pttl("lock") > 5000
other = client.lock("lock", timeout=10, blocking=False)
assert not other.acquire()
assert lock.extend(100) and client.ttl("lock") > 100
assert lock.extend(50, replace_ttl=True) and 40 < client.ttl("lock") <= 50
assert lock.reacquire() and client.ttl("lock") <= 10
other.local.token = b"not the holder"
for call in (other.release, other.reacquire, lambda: other.extend(10)):
    try:
        call()
        raise SystemExit("a lock of another holder")
    except redis.exceptions.LockError:
        pass
assert client.get("lock") == lock.local.token
lock.release()
assert client.get("lock") is None
lock.local.token = b"gone"
for call in (lock.release, lock.reacquire, lambda: lock.extend(10)):
    try:
        call()
        raise SystemExit("a lock that is gone")
    except redis.exceptions.LockError:
        pass
assert "No matching script" in refused(client.evalsha, "a" * 40, 1, "lock")

# The server.
assert client.config_get("maxclients")["maxclients"] == "1024"
assert client.config_set("timeout", 300) is True and client.config_get("time*") == {"timeout": "300"}
assert refused(client.config_set, "nothing", 1).startswith("Unknown option")
assert client.command_count() > 50 and "get" in client.command()
assert client.info()["redis_version"] == "7.0.15"
assert "unknown command 'NONESUCH'" in refused(client.execute_command, "NONESUCH", "a")
client.close()
print("redis-py: all as expected")

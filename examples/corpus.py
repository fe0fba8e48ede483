"""Stores the paths and sizes of all files below a directory with a memcached client, and looks them up again.

    corpus.py store DIRECTORY LOG     stores until done or the server is gone; LOG gets the acknowledged entries
    corpus.py verify LOG              looks up every line of LOG

Needs pymemcache, and a server on 127.0.0.1, port 11211 or WOLLEMI_PORT.
"""

import os
import sys

from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheError

SERVER = ("127.0.0.1", int(os.environ.get("WOLLEMI_PORT", "11211")))


def files(directory):
    """Yields the paths that are valid memcached keys, and their sizes."""
    for folder, _, names in os.walk(directory.encode()):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path) or len(path) > 250 or any(byte <= 32 or byte == 127 for byte in path):
                continue
            yield path, str(os.stat(path).st_size).encode()


def store(directory, log):
    client = Client(SERVER, default_noreply=False)
    stored = 0
    with open(log, "wb", buffering=0) as acknowledged:
        try:
            for path, size in files(directory):
                if client.set(path, size):
                    acknowledged.write(path + b"\t" + size + b"\n")
                    stored += 1
        except (OSError, MemcacheError) as error:
            print(f"the server is gone: {error!r}")
    print(f"{stored} acknowledged")


def verify(log):
    client = Client(SERVER)
    with open(log, "rb") as acknowledged:
        entries = [line.rstrip(b"\n").split(b"\t") for line in acknowledged]
    lost = 0
    for start in range(0, len(entries), 100):
        batch = dict(entries[start : start + 100])
        found = client.get_many(batch.keys())
        lost += sum(found.get(path) != size for path, size in batch.items())
    print(f"{len(entries)} acknowledged, {lost} of them lost")
    return lost > 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["store", directory, log]:
            sys.exit(store(directory, log))
        case ["verify", log]:
            sys.exit(verify(log))
        case _:
            sys.exit(__doc__)

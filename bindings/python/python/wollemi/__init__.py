"""Wollemi: an ordered, persistent key-value store that is up again the instant it is reopened.

    import wollemi

    with wollemi.open("shop.pool") as db:
        prices = db.map("prices")
        prices[b"apple"] = b"0.30"
        for key, value in prices.items(prefix=b"ap", reverse=True):
            print(key, value)

A write that has returned survives the end of the process, kill -9 included, and at the levels "disk" and "power" also a
loss of power. Many threads may use databases and maps at once; the library releases the GIL while it works.
"""

from ._database import AsyncMap, Batch, Database, Expiring, Map, Snapshot, Transaction, View, open
from ._native import (
    MAX_KEY,
    MAX_VALUE,
    BusyError,
    ClosedError,
    ConflictError,
    DamagedError,
    FullError,
    InUseError,
    NotDurableError,
    PowerLossError,
    ReadOnlyError,
    WollemiError,
    __version__,
)

__all__ = [
    "MAX_KEY",
    "MAX_VALUE",
    "AsyncMap",
    "Batch",
    "BusyError",
    "ClosedError",
    "ConflictError",
    "Database",
    "DamagedError",
    "Expiring",
    "FullError",
    "InUseError",
    "Map",
    "NotDurableError",
    "PowerLossError",
    "ReadOnlyError",
    "Snapshot",
    "Transaction",
    "View",
    "WollemiError",
    "__version__",
    "open",
]

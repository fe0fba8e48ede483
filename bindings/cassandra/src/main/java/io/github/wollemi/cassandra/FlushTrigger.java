package io.github.wollemi.cassandra;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.index.SecondaryIndexManager;

/** Requests the flush of a memtable, once, when its pool has reached the size at which it is flushed. */
final class FlushTrigger {
    /** The size is checked at least every this many written bytes. */
    private static final long CHECK_INTERVAL = 4 << 20;

    private final Memtable memtable;
    private final Memtable.Owner owner;
    private final long flushSize;
    /** The first write checks the size: the pool may be an adopted one. */
    private final AtomicLong bytesSinceCheck = new AtomicLong(CHECK_INTERVAL);
    private final AtomicBoolean flushRequested = new AtomicBoolean();

    FlushTrigger(Memtable memtable, Memtable.Owner owner, Settings settings) {
        this.memtable = memtable;
        this.owner = owner;
        this.flushSize = settings.flushSize();
    }

    /** Takes note of a write of so many bytes to the pool. */
    void wrote(Pool pool, long bytes) {
        if (bytesSinceCheck.addAndGet(bytes) < Math.min(CHECK_INTERVAL, flushSize / 4)) {
            return;
        }
        bytesSinceCheck.set(0);
        check(pool);
    }

    /** Takes note of a write that failed because the pool, or its disk, is full. */
    void full(Pool pool) {
        check(pool);
    }

    private void check(Pool pool) {
        if (pool.size() >= flushSize && !flushRequested.getAndSet(true)) {
            requestFlush();
        }
    }

    /**
     * Asks Cassandra to flush the table together with its indexes. An index is never flushed alone: Cassandra would
     * discard the commit log of its table, which has the same id.
     */
    private void requestFlush() {
        if (!(owner instanceof ColumnFamilyStore store) || !SecondaryIndexManager.isIndexColumnFamilyStore(store)) {
            owner.signalFlushRequired(memtable, ColumnFamilyStore.FlushReason.MEMTABLE_LIMIT);
        } else if (store.getCurrentMemtable() == memtable) {
            ColumnFamilyStore table = SecondaryIndexManager.getParentCfs(store);
            table.signalFlushRequired(table.getCurrentMemtable(), ColumnFamilyStore.FlushReason.MEMTABLE_LIMIT);
        }
    }
}

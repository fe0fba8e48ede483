package io.github.wollemi.cassandra;

import java.util.List;
import java.util.function.Supplier;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.notifications.INotification;
import org.apache.cassandra.notifications.INotificationConsumer;
import org.apache.cassandra.notifications.MemtableDiscardedNotification;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Retires a memtable's pools as soon as their SSTables are part of the table.
 *
 * <p>Cassandra discards the memtable only after the reads that began earlier have ended. Until then compactions may
 * already have purged tombstones of those SSTables; a pool adopted after a crash in between would resurrect deleted
 * rows.
 */
final class Retirement implements INotificationConsumer {
    private static final Logger LOGGER = LoggerFactory.getLogger(Retirement.class);

    private final Memtable memtable;
    private final Pools tablePools;
    private final Supplier<List<Pool>> pools;
    private final ColumnFamilyStore table;
    private boolean done;

    /**
     * Waits for the notification, if the memtable belongs to a table.
     *
     * @param pools returns the memtable's pools
     */
    Retirement(Memtable memtable, Memtable.Owner owner, Pools tablePools, Supplier<List<Pool>> pools) {
        this.memtable = memtable;
        this.tablePools = tablePools;
        this.pools = pools;
        this.table = owner instanceof ColumnFamilyStore ? (ColumnFamilyStore) owner : null;
        if (table != null) {
            table.getTracker().subscribe(this);
        }
    }

    @Override
    public void handleNotification(INotification notification, Object sender) {
        if (notification instanceof MemtableDiscardedNotification discarded && discarded.memtable == memtable) {
            try {
                retire();
            } catch (RuntimeException failed) {
                // An exception would break off the flush. The discard tries again.
                LOGGER.warn("the pools of {}, which is flushed, could not be retired yet", memtable, failed);
            }
        }
    }

    /** Retires the pools, once. */
    synchronized void retire() {
        if (!done) {
            if (table != null) {
                table.getTracker().unsubscribe(this);
            }
            pools.get().forEach(pool -> tablePools.retire(pool.path()));
            done = true;
        }
    }
}

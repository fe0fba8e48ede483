package io.github.wollemi.cassandra;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.commitlog.CommitLog;
import org.apache.cassandra.db.memtable.Memtable;

/** The commands of a node's process that measurements use. */
final class NodeFigures {
    /** Concurrent writes; many, because at level {@code disk} they share a sync. */
    private static final int WRITERS = 64;

    private NodeFigures() {}

    /**
     * Inserts rows of 1 KiB into a table with the columns {@code p int} and {@code pad text}, without a client, and then
     * syncs the commit log.
     */
    static void fill(ColumnFamilyStore table, int rows) throws Exception {
        String insert = "INSERT INTO " + table.metadata() + " (p, pad) VALUES (?, ?)";
        AtomicInteger next = new AtomicInteger();
        ExecutorService pool = Executors.newFixedThreadPool(WRITERS);
        try {
            List<Future<?>> writers = new ArrayList<>();
            for (int i = 0; i < WRITERS; i++) {
                writers.add(pool.submit(() -> {
                    for (int row; (row = next.getAndIncrement()) < rows;) {
                        QueryProcessor.executeInternal(insert, row, Figures.PAD);
                    }
                }));
            }
            for (Future<?> writer : writers) {
                writer.get();
            }
            CommitLog.instance.sync(true);
        } finally {
            pool.shutdown();
        }
    }

    /** Returns the bytes used on the heap after a collection, and those that a table's memtable owns on and off it. */
    static String memory(ColumnFamilyStore table) {
        System.gc();
        Memtable.MemoryUsage owned = Memtable.getMemoryUsage(table.getCurrentMemtable());
        long used = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
        return used + " " + owned.ownsOnHeap + " " + owned.ownsOffHeap;
    }
}

package io.github.wollemi.cassandra;

import io.github.wollemi.Snapshot;
import io.github.wollemi.WollemiException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.EmptyIterators;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.SystemKeyspace;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.memtable.AbstractAllocatorMemtable;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.db.partitions.Partition;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterators;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.LazilyInitializedUnfilteredRowIterator;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.db.rows.UnfilteredRowIterators;
import org.apache.cassandra.index.SecondaryIndexManager;
import org.apache.cassandra.index.transactions.UpdateTransaction;
import org.apache.cassandra.io.sstable.SSTableReadsListener;
import org.apache.cassandra.schema.IndexMetadata;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.utils.concurrent.OpOrder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A memtable in a Wollemi pool: rows are durable when a write returns, at the pool's level, and available at once when
 * the node restarts. Like any memtable it is flushed to SSTables; then its pool is removed.
 *
 * <p>The first write creates the pool. The first memtable of a table in a process adopts the pools of an earlier
 * process: it continues to write to the newest, and reads and flushes the older ones with it.
 *
 * <p>The node's configuration names this class, with the parameters of {@code Settings}:
 *
 * <pre>{@code
 * memtable:
 *   configurations:
 *     wollemi:
 *       class_name: io.github.wollemi.cassandra.WollemiMemtable
 *       parameters:
 *         directory: /var/lib/cassandra/wollemi
 * }</pre>
 */
public final class WollemiMemtable extends AbstractAllocatorMemtable {
    private static final Logger LOGGER = LoggerFactory.getLogger(WollemiMemtable.class);
    /** The size is checked at least every this many written bytes. */
    private static final long CHECK_INTERVAL = 4 << 20;

    private final Settings settings;
    private final Pools folder;
    /** Pools of an earlier process that are no longer written, oldest first. */
    private final List<Pool> inherited;
    /** The pool that is written to; null before the first write. */
    private volatile Pool active;
    private volatile long switchedOut = Long.MAX_VALUE;
    private volatile Retirement retirement;

    private final AtomicLong liveDataSize = new AtomicLong();
    private final AtomicLong sinceLook = new AtomicLong();
    private final AtomicBoolean flushAsked = new AtomicBoolean();
    private final Estimate partitions = new Estimate();

    WollemiMemtable(Settings settings, AtomicReference<CommitLogPosition> commitLogLowerBound, TableMetadataRef metadata,
            Memtable.Owner owner) {
        super(commitLogLowerBound, metadata, owner);
        this.settings = settings;
        this.folder = Pools.of(settings, metadata);
        List<Pool> left = new ArrayList<>(
                folder.adopt(settings, metadata, () -> SystemKeyspace.getTruncatedAt(metadata.get().id)));
        for (Pool pool : left) {
            liveDataSize.addAndGet(pool.size());
            columnsCollector.update(pool.schema().columns());
        }
        if (!left.isEmpty()) {
            warnOfIndexes(metadata());
            Pool newest = left.remove(left.size() - 1);
            newest.clearSwitchedOut();
            active = newest;
        }
        this.inherited = List.copyOf(left);
    }

    /** Warns of custom indexes (SAI, SASI): unflushed entries are on the heap, so those of adopted rows are lost. */
    private static void warnOfIndexes(TableMetadata table) {
        for (IndexMetadata index : table.indexes) {
            if (index.isCustom()) {
                LOGGER.warn("{}: the index {} may lack rows of the memtable pools that were adopted. Flush the table, then "
                        + "rebuild the index", table, index.name);
            }
        }
    }

    /**
     * Creates the factory of a configuration. Cassandra calls it.
     *
     * @param parameters the parameters in the node's configuration; known ones are removed
     * @return the factory
     */
    public static Memtable.Factory factory(Map<String, String> parameters) {
        WollemiFactory factory = new WollemiFactory(Settings.take(parameters));
        Pools.closeAfterDrain();
        return factory;
    }

    @Override
    public long put(PartitionUpdate update, UpdateTransaction indexer, OpOrder.Group opGroup) {
        Pool pool = writable();
        Writer writer = new Writer(pool, update, indexer, metadata());
        // Before the write: if an index fails then, the row is present, and is flushed with all of its columns.
        columnsCollector.update(update.columns());
        writer.write();
        liveDataSize.addAndGet(writer.growth());
        currentOperations.addAndGet(update.operationCount());
        flushIfLarge(pool, update.dataSize());
        return writer.timeDelta();
    }

    private Pool writable() {
        Pool pool = active;
        return pool != null ? pool : create();
    }

    private synchronized Pool create() {
        if (active == null) {
            Pool pool = folder.create(settings, metadata);
            if (switchedOut != Long.MAX_VALUE) {
                try {
                    pool.setSwitchedOut(switchedOut);
                } catch (WollemiException failed) {
                    pool.close();
                    throw MemtableFailure.of(pool, "creating", failed);
                }
            }
            active = pool;
        }
        return active;
    }

    private void flushIfLarge(Pool pool, long written) {
        if (sinceLook.addAndGet(written) < Math.min(CHECK_INTERVAL, settings.flushSize() / 4)) {
            return;
        }
        sinceLook.set(0);
        if (pool.size() >= settings.flushSize() && !flushAsked.getAndSet(true)) {
            askForFlush();
        }
    }

    /**
     * A table and its indexes are flushed together. Flushing an index alone would make Cassandra discard the commit log
     * of its table, which has the same id.
     */
    private void askForFlush() {
        if (!(owner instanceof ColumnFamilyStore store) || !SecondaryIndexManager.isIndexColumnFamilyStore(store)) {
            owner.signalFlushRequired(this, ColumnFamilyStore.FlushReason.MEMTABLE_LIMIT);
        } else if (store.getCurrentMemtable() == this) {
            ColumnFamilyStore table = SecondaryIndexManager.getParentCfs(store);
            table.signalFlushRequired(table.getCurrentMemtable(), ColumnFamilyStore.FlushReason.MEMTABLE_LIMIT);
        }
    }

    /** Returns all pools, the one that is written to last. */
    private List<Pool> pools() {
        Pool pool = active;
        if (pool == null) {
            return inherited;
        }
        if (inherited.isEmpty()) {
            return List.of(pool);
        }
        List<Pool> all = new ArrayList<>(inherited);
        all.add(pool);
        return all;
    }

    @Override
    public UnfilteredRowIterator rowIterator(DecoratedKey key, Slices slices, ColumnFilter filter, boolean reversed,
            SSTableReadsListener listener) {
        Selection selection = new Selection(metadata(), key, slices, filter, reversed, storedStats());
        byte[] partition = Keys.partition(key);
        List<UnfilteredRowIterator> found = new ArrayList<>(1);
        try {
            for (Pool pool : pools()) {
                UnfilteredRowIterator one = new Reader(pool, selection, partition).read();
                if (one != null) {
                    found.add(one);
                }
            }
        } catch (RuntimeException failed) {
            found.forEach(UnfilteredRowIterator::close);
            throw failed;
        }
        return found.isEmpty() ? null : found.size() == 1 ? found.get(0) : UnfilteredRowIterators.merge(found);
    }

    /**
     * Returns all of a partition. Compactions only ask whether it is empty, and do not close the iterator: so it holds
     * no resources before it is used.
     */
    @Override
    public UnfilteredRowIterator rowIterator(DecoratedKey key) {
        byte[] partition = Keys.partition(key);
        if (pools().stream().noneMatch(pool -> pool.mayHold(partition))) {
            return null;
        }
        return new LazilyInitializedUnfilteredRowIterator(key) {
            @Override
            protected UnfilteredRowIterator initializeIterator() {
                ColumnFilter all = ColumnFilter.selection(storedColumns());
                UnfilteredRowIterator found =
                        rowIterator(key, Slices.ALL, all, false, SSTableReadsListener.NOOP_LISTENER);
                return found != null ? found : EmptyIterators.unfilteredRow(WollemiMemtable.this.metadata(), key, false);
            }
        };
    }

    @Override
    public UnfilteredPartitionIterator partitionIterator(ColumnFilter filter, DataRange range,
            SSTableReadsListener listener) {
        List<UnfilteredPartitionIterator> scans = new ArrayList<>(1);
        try {
            for (Pool pool : pools()) {
                scans.add(scan(pool, filter, range));
            }
        } catch (RuntimeException failed) {
            scans.forEach(UnfilteredPartitionIterator::close);
            throw failed;
        }
        if (scans.isEmpty()) {
            return EmptyIterators.unfilteredPartition(metadata());
        }
        return scans.size() == 1 ? scans.get(0)
                : UnfilteredPartitionIterators.merge(scans, UnfilteredPartitionIterators.MergeListener.NOOP);
    }

    private PartitionScan scan(Pool pool, ColumnFilter filter, DataRange range) {
        var bounds = range.keyRange();
        TableMetadata table = metadata();
        Snapshot snapshot = pool.database().snapshot();
        try {
            var view = Scan.between(snapshot.map(pool.rows()), bounds.left, bounds.inclusiveLeft(), bounds.right,
                    bounds.inclusiveRight());
            return new PartitionScan(new Scan(pool, view, table, storedStats()), table, filter, range, snapshot::close);
        } catch (RuntimeException failed) {
            snapshot.close();
            throw failed;
        }
    }

    /** Returns all partitions between two positions. No writer may be active any more. */
    Iterator<Partition> partitions(PartitionPosition from, PartitionPosition to) {
        List<Pool> pools = pools();
        if (pools.size() <= 1) {
            return pools.isEmpty() ? Collections.emptyIterator() : scan(pools.get(0), from, to);
        }
        return new MergedScan(pools.stream().map(pool -> scan(pool, from, to)).toList());
    }

    private Scan scan(Pool pool, PartitionPosition from, PartitionPosition to) {
        return new Scan(pool, Scan.between(pool.rows(), from, true, to, false), metadata(), storedStats());
    }

    /** Counts the partitions between two positions; one in several pools counts for each, one in a closed pool not. */
    Census census(PartitionPosition from, PartitionPosition to) {
        return pools().stream().map(pool -> pool.unlessClosed(() -> Census.of(scan(pool, from, to)), Census.NONE))
                .reduce(Census.NONE, Census::and);
    }

    /** Returns an estimate: metrics ask for it again and again, and a count walks the pools. */
    @Override
    public long partitionCount() {
        return partitions.at(getLiveDataSize(), () -> census(null, null).partitions());
    }

    @Override
    public FlushablePartitionSet<?> getFlushSet(PartitionPosition from, PartitionPosition to) {
        return new FlushSet(this, from, to);
    }

    RegularAndStaticColumns storedColumns() {
        return columnsCollector.get();
    }

    EncodingStats storedStats() {
        EncodingStats stats = EncodingStats.NO_STATS;
        for (Pool pool : pools()) {
            stats = stats.mergeWith(pool.minima().stats());
        }
        return stats;
    }

    @Override
    public long getMinTimestamp() {
        return pools().stream().mapToLong(pool -> pool.minima().reported()).min().orElse(Long.MAX_VALUE);
    }

    @Override
    public long getMinLocalDeletionTime() {
        return pools().stream().mapToLong(pool -> pool.minima().localDeletionTime()).min().orElse(Long.MAX_VALUE);
    }

    @Override
    public boolean isClean() {
        return pools().stream().allMatch(Pool::isEmpty);
    }

    @Override
    public long getLiveDataSize() {
        return liveDataSize.get();
    }

    @Override
    public void addMemoryUsageTo(MemoryUsage usage) {
        super.addMemoryUsageTo(usage);
        usage.ownsOffHeap += getLiveDataSize();
    }

    @Override
    public boolean shouldSwitch(ColumnFamilyStore.FlushReason reason) {
        return switch (reason) {
            // A durable pool needs no room in the commit log, and no flush after the node's start.
            case COMMITLOG_DIRTY, STARTUP -> !settings.durable();
            default -> super.shouldSwitch(reason);
        };
    }

    @Override
    public void metadataUpdated() {
        pools().forEach(pool -> pool.schema().altered());
        super.metadataUpdated();
    }

    @Override
    public synchronized void switchOut(OpOrder.Barrier writeBarrier,
            AtomicReference<CommitLogPosition> commitLogUpperBound) {
        super.switchOut(writeBarrier, commitLogUpperBound);
        switchedOut = folder.switchOut(owner);
        retirement = new Retirement(this, owner, folder, this::pools);
        pools().forEach(this::markSwitchedOut);
    }

    /**
     * An exception would keep Cassandra from ever flushing the memtable. The mark matters only if the node is killed.
     */
    private void markSwitchedOut(Pool pool) {
        try {
            pool.setSwitchedOut(switchedOut);
        } catch (RuntimeException failed) {
            LOGGER.warn("{}: the memtable pool {} could not be marked as switched out. If the table is truncated, and the node "
                    + "killed before the pool is removed, its rows are there again", metadata(), pool, failed);
        }
    }

    @Override
    public void discard() {
        super.discard();
        retirement.retire();
        for (Pool pool : pools()) {
            pool.abandon();
            folder.remove(pool.path());
        }
    }
}

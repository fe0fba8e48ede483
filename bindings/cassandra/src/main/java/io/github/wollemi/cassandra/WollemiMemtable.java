package io.github.wollemi.cassandra;

import io.github.wollemi.Snapshot;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.EmptyIterators;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.SystemKeyspace;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.commitlog.CommitLogReplayer;
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

    private final Settings settings;
    private final MemtablePools pools;
    private final FlushTrigger flushTrigger;
    private final AtomicLong liveDataSize = new AtomicLong();
    private final Estimate partitions = new Estimate();

    WollemiMemtable(Settings settings, AtomicReference<CommitLogPosition> commitLogLowerBound, TableMetadataRef metadata,
            Memtable.Owner owner) {
        super(commitLogLowerBound, metadata, owner);
        this.settings = settings;
        this.flushTrigger = new FlushTrigger(this, owner, settings);
        this.pools = new MemtablePools(settings, metadata, () -> SystemKeyspace.getTruncatedAt(metadata.get().id),
                this::adopted);
        if (!pools.all().isEmpty()) {
            warnOfIndexes(metadata());
        }
    }

    private void adopted(Pool pool) {
        liveDataSize.addAndGet(pool.size());
        columnsCollector.update(pool.schema().columns());
    }

    /**
     * Warns of custom indexes (SAI, SASI). They keep unflushed entries on the heap, so entries for adopted rows are lost.
     */
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
        Pool pool = pools.writable();
        Writer writer = new Writer(pool, update, indexer, metadata());
        // Before the write: if an index fails after the row was written, the row is flushed, and all of its columns must
        // be known.
        columnsCollector.update(update.columns());
        try {
            writer.write();
        } catch (MemtableFailure failed) {
            if (failed.isFull()) {
                try {
                    flushTrigger.full(pool);
                } catch (RuntimeException also) {
                    failed.addSuppressed(also);
                }
            }
            if (failed.isPermanent() && isReplaying()) {
                LOGGER.error("a write in the commit log is left out: it was refused when it was made", failed);
                return Long.MAX_VALUE;
            }
            throw failed;
        }
        liveDataSize.addAndGet(writer.growth());
        currentOperations.addAndGet(update.operationCount());
        flushTrigger.wrote(pool, update.dataSize());
        return writer.timeDelta();
    }

    /**
     * Returns whether the calling thread replays the commit log. The log has refused writes too, since Cassandra adds a
     * write to it first; an exception during the replay would keep the node from starting.
     */
    private static boolean isReplaying() {
        String replayer = CommitLogReplayer.class.getName();
        return StackWalker.getInstance().walk(
                frames -> frames.anyMatch(frame -> frame.getClassName().startsWith(replayer)));
    }

    @Override
    public UnfilteredRowIterator rowIterator(DecoratedKey key, Slices slices, ColumnFilter filter, boolean reversed,
            SSTableReadsListener listener) {
        Selection selection = new Selection(metadata(), key, slices, filter, reversed, storedStats());
        byte[] partition = Keys.partition(key);
        List<UnfilteredRowIterator> found = new ArrayList<>(1);
        try {
            for (Pool pool : pools.all()) {
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
     * Returns all of a partition. Compactions only test the result for null and do not close it, so the iterator holds no
     * resources before its first use.
     */
    @Override
    public UnfilteredRowIterator rowIterator(DecoratedKey key) {
        byte[] partition = Keys.partition(key);
        if (pools.all().stream().noneMatch(pool -> pool.mayHold(partition))) {
            return null;
        }
        return new LazilyInitializedUnfilteredRowIterator(key) {
            @Override
            protected UnfilteredRowIterator initializeIterator() {
                ColumnFilter all = ColumnFilter.selection(columnsCollector.get());
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
            for (Pool pool : pools.all()) {
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
    private Iterator<Partition> partitions(PartitionPosition from, PartitionPosition to) {
        List<Pool> all = pools.all();
        if (all.size() <= 1) {
            return all.isEmpty() ? Collections.emptyIterator() : scan(all.get(0), from, to);
        }
        return new MergedScan(all.stream().map(pool -> scan(pool, from, to)).toList());
    }

    private Scan scan(Pool pool, PartitionPosition from, PartitionPosition to) {
        return new Scan(pool, Scan.between(pool.rows(), from, true, to, false), metadata(), storedStats());
    }

    /**
     * Counts the partitions between two positions. A partition in several pools counts once for each. Closed pools count
     * as empty.
     */
    private Census census(PartitionPosition from, PartitionPosition to) {
        return pools.all().stream().map(pool -> pool.unlessClosed(() -> Census.of(scan(pool, from, to)), Census.NONE))
                .reduce(Census.NONE, Census::plus);
    }

    /** Returns an estimate, since metrics poll it and a count walks the pools. */
    @Override
    public long partitionCount() {
        return partitions.at(getLiveDataSize(), () -> census(null, null).partitions());
    }

    @Override
    public FlushablePartitionSet<?> getFlushSet(PartitionPosition from, PartitionPosition to) {
        return new FlushSet(from, to);
    }

    private EncodingStats storedStats() {
        EncodingStats stats = EncodingStats.NO_STATS;
        for (Pool pool : pools.all()) {
            stats = stats.mergeWith(pool.minima().stats());
        }
        return stats;
    }

    @Override
    public long getMinTimestamp() {
        return pools.all().stream().mapToLong(pool -> pool.minima().reported()).min().orElse(Long.MAX_VALUE);
    }

    @Override
    public long getMinLocalDeletionTime() {
        return pools.all().stream().mapToLong(pool -> pool.minima().localDeletionTime()).min().orElse(Long.MAX_VALUE);
    }

    @Override
    public boolean isClean() {
        return pools.all().stream().allMatch(Pool::isEmpty);
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
        pools.all().forEach(pool -> pool.schema().altered());
        super.metadataUpdated();
    }

    @Override
    public void switchOut(OpOrder.Barrier writeBarrier, AtomicReference<CommitLogPosition> commitLogUpperBound) {
        super.switchOut(writeBarrier, commitLogUpperBound);
        pools.switchOut(this, owner);
    }

    @Override
    public void discard() {
        super.discard();
        pools.discard();
    }

    /**
     * The partitions from {@code from} (inclusive) to {@code to} (exclusive) that one flush writes to an SSTable.
     * {@code partitionCount} and {@code partitionKeysSize} are upper bounds: a partition in several pools counts once for
     * each. {@code dataSize} is that of the whole memtable, whatever the range.
     */
    private final class FlushSet extends AbstractFlushablePartitionSet<Partition> {
        private final PartitionPosition from;
        private final PartitionPosition to;
        private final Census census;

        FlushSet(PartitionPosition from, PartitionPosition to) {
            this.from = from;
            this.to = to;
            this.census = census(from, to);
        }

        @Override
        public Memtable memtable() {
            return WollemiMemtable.this;
        }

        @Override
        public PartitionPosition from() {
            return from;
        }

        @Override
        public PartitionPosition to() {
            return to;
        }

        @Override
        public EncodingStats encodingStats() {
            return storedStats();
        }

        @Override
        public long partitionCount() {
            return census.partitions();
        }

        @Override
        public long partitionKeysSize() {
            return census.keyBytes();
        }

        @Override
        public Iterator<Partition> iterator() {
            return partitions(from, to);
        }
    }
}

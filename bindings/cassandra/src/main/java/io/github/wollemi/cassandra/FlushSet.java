package io.github.wollemi.cassandra;

import java.util.Iterator;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.db.partitions.Partition;
import org.apache.cassandra.db.rows.EncodingStats;

/**
 * The partitions from {@code from} (inclusive) to {@code to} (exclusive) that one flush writes to an SSTable. Sizes are
 * upper bounds.
 */
final class FlushSet implements Memtable.FlushablePartitionSet<Partition> {
    private final WollemiMemtable memtable;
    private final PartitionPosition from;
    private final PartitionPosition to;
    private final Census census;

    FlushSet(WollemiMemtable memtable, PartitionPosition from, PartitionPosition to) {
        this.memtable = memtable;
        this.from = from;
        this.to = to;
        this.census = memtable.census(from, to);
    }

    @Override
    public Memtable memtable() {
        return memtable;
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
    public CommitLogPosition commitLogLowerBound() {
        return memtable.getCommitLogLowerBound();
    }

    @Override
    public CommitLogPosition commitLogUpperBound() {
        return memtable.getFinalCommitLogUpperBound();
    }

    @Override
    public RegularAndStaticColumns columns() {
        return memtable.storedColumns();
    }

    @Override
    public EncodingStats encodingStats() {
        return memtable.storedStats();
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
    public long dataSize() {
        return memtable.getLiveDataSize();
    }

    @Override
    public Iterator<Partition> iterator() {
        return memtable.partitions(from, to);
    }
}

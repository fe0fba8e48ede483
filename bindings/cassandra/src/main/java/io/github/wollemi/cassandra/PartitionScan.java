package io.github.wollemi.cassandra;

import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.partitions.AbstractUnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;

/** The selected parts of a range of partitions. */
final class PartitionScan extends AbstractUnfilteredPartitionIterator {
    private final Scan scan;
    private final TableMetadata metadata;
    private final ColumnFilter filter;
    private final DataRange range;
    private final Runnable close;

    PartitionScan(Scan scan, TableMetadata metadata, ColumnFilter filter, DataRange range, Runnable close) {
        this.scan = scan;
        this.metadata = metadata;
        this.filter = filter;
        this.range = range;
        this.close = close;
    }

    @Override
    public TableMetadata metadata() {
        return metadata;
    }

    @Override
    public boolean hasNext() {
        return scan.hasNext();
    }

    @Override
    public UnfilteredRowIterator next() {
        Scan.Stored partition = scan.next();
        return range.clusteringIndexFilter(partition.partitionKey()).getUnfilteredRowIterator(filter, partition);
    }

    @Override
    public void close() {
        close.run();
    }
}

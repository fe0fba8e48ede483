package io.github.wollemi.cassandra;

import java.util.Arrays;
import java.util.Iterator;
import java.util.function.Function;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.ClusteringBound;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.RowAndDeletionMergeIterator;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;

/**
 * A query on one partition.
 *
 * @param metadata the table as it is now
 * @param key the partition's key
 * @param slices the rows
 * @param filter the columns
 * @param reversed whether to read from the last row to the first
 * @param stats what is known of the partition's timestamps
 */
record Selection(TableMetadata metadata, DecoratedKey key, Slices slices, ColumnFilter filter, boolean reversed,
        EncodingStats stats) {
    /**
     * Returns the selected parts.
     *
     * @param heads the parts of the partition other than rows
     * @param rows returns the rows of a slice, in the requested order
     * @param close run when the iterator is closed
     */
    UnfilteredRowIterator answer(Heads heads, Function<Slice, Iterator<Row>> rows, Runnable close) {
        return new Answer(this, heads, rows, close);
    }

    /** Returns the rows and range deletions of one slice. */
    UnfilteredRowIterator slice(Heads heads, Slice slice, Iterator<Row> rows) {
        return new RowAndDeletionMergeIterator(metadata, key, heads.deletion().getPartitionDeletion(), filter,
                heads.statics(filter, metadata), reversed, stats, rows, heads.deletion().rangeIterator(slice, reversed),
                true);
    }

    /** Returns a slice by its index in the requested order. */
    Slice slice(int index) {
        return slices.get(reversed ? slices.size() - 1 - index : index);
    }

    /** Returns the key of the only row that a slice can have, or null if it can have several. */
    byte[] point(byte[] partition, Slice slice) {
        int size = metadata.comparator.size();
        if (size == 0) {
            return Keys.row(partition, metadata.comparator, Clustering.EMPTY);
        }
        if (slice.start().size() < size || slice.end().size() < size || !slice.start().isInclusive()
                || !slice.end().isInclusive()) {
            return null;
        }
        byte[] start = Keys.row(partition, metadata.comparator, clustering(slice.start()));
        return Arrays.equals(start, Keys.row(partition, metadata.comparator, clustering(slice.end()))) ? start : null;
    }

    private static <V> Clustering<V> clustering(ClusteringBound<V> bound) {
        return bound.accessor().factory().clustering(bound.getRawValues());
    }
}

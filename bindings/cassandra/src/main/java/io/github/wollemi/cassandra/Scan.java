package io.github.wollemi.cassandra;

import io.github.wollemi.ReadableMap;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.NavigableSet;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.partitions.Partition;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;

/**
 * The partitions of a view of a pool, in order. A full scan of a partition's rows uses the cursor that iterates over
 * the partitions; other reads have cursors of their own.
 */
final class Scan implements Iterator<Partition> {
    private final Pool pool;
    private final ReadableMap view;
    private final TableMetadata metadata;
    private final EncodingStats stats;
    private final Entries entries;
    /** The partition that the cursor is in, or null. */
    private Stored current;

    Scan(Pool pool, ReadableMap view, TableMetadata metadata, EncodingStats stats) {
        this.pool = pool;
        this.view = view;
        this.metadata = metadata;
        this.stats = stats;
        this.entries = new Entries(view);
    }

    /** Returns the part of a view between two positions. Null or a minimum is no bound. */
    static ReadableMap between(ReadableMap view, PartitionPosition from, boolean fromIncluded, PartitionPosition to,
            boolean toIncluded) {
        ReadableMap part = view;
        if (from != null && !from.isMinimum()) {
            part = part.tailMap(Keys.lower(from, fromIncluded), true);
        }
        return to == null || to.isMinimum() ? part : part.headMap(Keys.upper(to, toIncluded), false);
    }

    @Override
    public boolean hasNext() {
        if (current != null) {
            entries.skip(current.partition);
            current = null;
        }
        return entries.present();
    }

    @Override
    public Stored next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        ByteBuffer at = entries.key();
        byte[] key = new byte[at.remaining()];
        at.get(key);
        DecoratedKey decorated = Keys.decorated(key, metadata.partitioner);
        current = new Stored(decorated, Keys.partition(decorated));
        return current;
    }

    /** One of the partitions. */
    final class Stored implements Partition {
        private final DecoratedKey key;
        private final byte[] partition;
        private final Heads heads;
        /** Whether a full scan of the rows has begun, for which the shared cursor serves once. */
        private boolean taken;

        private Stored(DecoratedKey key, byte[] partition) {
            this.key = key;
            this.partition = partition;
            Heads found = Heads.NONE;
            if (isAt(Keys.DELETION)) {
                found = found.withDeletion(entries.value(), pool.schema(), metadata);
                entries.advance();
            }
            if (isAt(Keys.STATIC)) {
                found = found.withStatics(entries.value(), pool.schema(), metadata);
                entries.advance();
            }
            this.heads = found;
        }

        private boolean isAt(byte head) {
            return entries.in(partition) && entries.key().get(entries.key().position() + partition.length) == head;
        }

        @Override
        public TableMetadata metadata() {
            return metadata;
        }

        @Override
        public DecoratedKey partitionKey() {
            return key;
        }

        @Override
        public DeletionTime partitionLevelDeletion() {
            return heads.deletion().getPartitionDeletion();
        }

        @Override
        public RegularAndStaticColumns columns() {
            return pool.schema().columns();
        }

        @Override
        public EncodingStats stats() {
            return stats;
        }

        @Override
        public boolean isEmpty() {
            return heads.isEmpty() && !hasRows();
        }

        @Override
        public boolean hasRows() {
            return current == this && entries.in(partition);
        }

        @Override
        public Row getRow(Clustering<?> clustering) {
            byte[] value = Keys.find(view, Keys.row(partition, metadata.comparator, clustering));
            return value == null ? null : Codec.row(ByteBuffer.wrap(value), pool.schema(), metadata);
        }

        @Override
        public UnfilteredRowIterator unfilteredIterator() {
            return unfilteredIterator(ColumnFilter.selection(columns()), Slices.ALL, false);
        }

        @Override
        public UnfilteredRowIterator unfilteredIterator(ColumnFilter columns, Slices slices, boolean reversed) {
            Selection selection = new Selection(metadata, key, slices, columns, reversed, stats);
            if (slices != Slices.ALL || reversed || taken || current != this) {
                return new Reader(pool, selection, partition).readView(view, () -> {});
            }
            taken = true;
            Iterator<ByteBuffer> values = entries.take(partition, () -> current == this);
            return selection.answer(heads, slice -> new Values(values, pool.schema(), metadata), () -> {});
        }

        @Override
        public UnfilteredRowIterator unfilteredIterator(ColumnFilter columns, NavigableSet<Clustering<?>> clusterings,
                boolean reversed) {
            Slices.Builder slices = new Slices.Builder(metadata.comparator, clusterings.size());
            clusterings.forEach(clustering -> slices.add(Slice.make(clustering)));
            return unfilteredIterator(columns, slices.build(), reversed);
        }
    }
}

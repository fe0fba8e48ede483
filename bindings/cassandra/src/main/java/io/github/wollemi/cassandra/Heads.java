package io.github.wollemi.cassandra;

import io.github.wollemi.ReadableMap;
import java.nio.ByteBuffer;
import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.schema.TableMetadata;

/**
 * The parts of a partition other than its rows.
 *
 * @param deletion its deletion and range deletions
 * @param statics its static row, which may be empty
 */
record Heads(DeletionInfo deletion, Row statics) {
    static final Heads NONE = new Heads(DeletionInfo.LIVE, Rows.EMPTY_STATIC_ROW);

    /** Reads the deletions, if the pool may have any, and the static row, if the filter needs it. */
    static Heads read(ReadableMap view, Pool pool, byte[] partition, ColumnFilter filter, TableMetadata metadata) {
        byte[] deletion = pool.minima().deletions() ? view.get(Keys.deletion(partition)) : null;
        byte[] statics = filter.fetchedColumns().statics.isEmpty() ? null : view.get(Keys.statics(partition));
        if (deletion == null && statics == null) {
            return NONE;
        }
        Heads heads = NONE;
        if (deletion != null) {
            heads = heads.withDeletion(ByteBuffer.wrap(deletion), pool.schema(), metadata);
        }
        return statics == null ? heads : heads.withStatics(ByteBuffer.wrap(statics), pool.schema(), metadata);
    }

    Heads withDeletion(ByteBuffer value, Schema schema, TableMetadata metadata) {
        return new Heads(Codec.deletion(value, schema, metadata), statics);
    }

    Heads withStatics(ByteBuffer value, Schema schema, TableMetadata metadata) {
        return new Heads(deletion, Codec.statics(value, schema, metadata));
    }

    boolean isEmpty() {
        return deletion.isLive() && statics.isEmpty();
    }

    /** Returns the static row as a filter selects it. */
    Row statics(ColumnFilter filter, TableMetadata metadata) {
        if (statics.isEmpty() || filter.fetchedColumns().statics.isEmpty()) {
            return Rows.EMPTY_STATIC_ROW;
        }
        Row row = statics.filter(filter, deletion.getPartitionDeletion(), false, metadata);
        return row == null ? Rows.EMPTY_STATIC_ROW : row;
    }
}

package io.github.wollemi.cassandra;

import io.github.wollemi.Cursor;
import java.nio.ByteBuffer;
import java.util.Iterator;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.AbstractIterator;

/** Decodes rows on demand. */
final class Values extends AbstractIterator<Row> {
    private final Iterator<ByteBuffer> values;
    private final Schema schema;
    private final TableMetadata metadata;

    Values(Iterator<ByteBuffer> values, Schema schema, TableMetadata metadata) {
        this.values = values;
        this.schema = schema;
        this.metadata = metadata;
    }

    /** Returns the values of a cursor. */
    static Iterator<ByteBuffer> of(Cursor cursor) {
        return new AbstractIterator<>() {
            @Override
            protected ByteBuffer computeNext() {
                return cursor.advance() ? writable(cursor.value()) : endOfData();
            }
        };
    }

    /** Returns a copy with its own array: Cassandra's input mistakes a read-only buffer for an off-heap one. */
    static ByteBuffer writable(ByteBuffer readOnly) {
        byte[] copy = new byte[readOnly.remaining()];
        readOnly.get(copy);
        return ByteBuffer.wrap(copy);
    }

    @Override
    protected Row computeNext() {
        while (values.hasNext()) {
            Row row = Codec.row(values.next(), schema, metadata);
            if (row != null) {
                return row;
            }
        }
        return endOfData();
    }
}

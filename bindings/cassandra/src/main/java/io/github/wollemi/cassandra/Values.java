package io.github.wollemi.cassandra;

import io.github.wollemi.Cursor;
import java.nio.ByteBuffer;
import java.util.Iterator;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.AbstractIterator;

/** Decodes rows as they are asked for. */
final class Values extends AbstractIterator<Row> {
    private final Iterator<ByteBuffer> values;
    private final Schema schema;
    private final TableMetadata metadata;

    Values(Iterator<ByteBuffer> values, Schema schema, TableMetadata metadata) {
        this.values = values;
        this.schema = schema;
        this.metadata = metadata;
    }

    /** The values that a cursor comes by. */
    static Iterator<ByteBuffer> of(Cursor cursor) {
        return new AbstractIterator<>() {
            @Override
            protected ByteBuffer computeNext() {
                return cursor.advance() ? writable(cursor.value()) : endOfData();
            }
        };
    }

    /** A copy with an array of its own: Cassandra's input takes a read-only buffer for one outside of the heap. */
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

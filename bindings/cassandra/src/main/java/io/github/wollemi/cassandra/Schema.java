package io.github.wollemi.cassandra;

import io.github.wollemi.DurableMap;
import io.github.wollemi.Entry;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.io.util.DataInputBuffer;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;

/**
 * The serialization headers of a pool: the columns, with their types, with which its rows were written.
 *
 * <p>Each value in the pool begins with the number of its header. A header is durable before any value that uses it,
 * and does not change; when columns are added, a new one is made with all columns of the earlier ones. A header is
 * stored in the form used in SSTables, so that columns dropped since are recognised in the same way.
 */
final class Schema {
    private static final byte[] PREFIX = "schema/".getBytes();

    /** One header. */
    record Numbered(int number, SerializationHeader header) {}

    private final DurableMap meta;
    private final TableMetadataRef metadata;
    /** By number. The array is replaced, never modified. */
    private volatile Numbered[] headers = {};
    /** How often the table was altered while the pool was open. */
    private final AtomicInteger alterations = new AtomicInteger();
    /** The alterations that the last header includes, set after it was added; -1 if an earlier process made it. */
    private volatile int included = -1;

    Schema(DurableMap meta, TableMetadataRef metadata) {
        this.meta = meta;
        this.metadata = metadata;
        for (Entry entry : meta.prefixMap(PREFIX)) {
            int number = ByteBuffer.wrap(entry.key(), PREFIX.length, Integer.BYTES).getInt();
            if (number != headers.length) {
                throw new IllegalStateException("header " + headers.length + " is missing");
            }
            add(new Numbered(number, parse(entry.value())));
        }
    }

    /** Records that the table was altered: the next write makes a new header. */
    void altered() {
        alterations.incrementAndGet();
    }

    /** Returns a header with all columns of an update and of the rows in the pool. */
    Numbered covering(RegularAndStaticColumns columns, EncodingStats stats) {
        // Read before the header, which is then at least as new.
        boolean isCurrent = included == alterations.get();
        Numbered last = last();
        if (last != null && isCurrent && last.header.columns().includes(columns)) {
            return last;
        }
        return make(columns, stats);
    }

    private synchronized Numbered make(RegularAndStaticColumns columns, EncodingStats stats) {
        // Read before the table's columns: an alteration that comes later makes a new header again.
        int known = alterations.get();
        Numbered last = last();
        if (last != null && included == known && last.header.columns().includes(columns)) {
            return last;
        }
        TableMetadata table = metadata.get();
        RegularAndStaticColumns all = union(table.regularAndStaticColumns(), columns,
                last == null ? RegularAndStaticColumns.NONE : last.header.columns());
        // Timestamps are stored as differences from the smallest of the update for which the header is made.
        EncodingStats base = new EncodingStats(stats.minTimestamp, EncodingStats.NO_STATS.minLocalDeletionTime,
                EncodingStats.NO_STATS.minTTL);
        SerializationHeader header = new SerializationHeader(true, table, all, base);
        Numbered made = new Numbered(headers.length, header);
        byte[] key = ByteBuffer.allocate(PREFIX.length + Integer.BYTES).put(PREFIX).putInt(made.number).array();
        meta.put(key, bytes(header));
        add(made);
        // Not earlier: the header before this one may have former types of the columns.
        included = known;
        return made;
    }

    /** Returns all columns, each name once, with the first of its definitions in the order of the arguments. */
    private static RegularAndStaticColumns union(RegularAndStaticColumns... several) {
        Set<ByteBuffer> names = new HashSet<>();
        RegularAndStaticColumns.Builder builder = RegularAndStaticColumns.builder();
        for (RegularAndStaticColumns columns : several) {
            for (ColumnMetadata column : columns) {
                if (names.add(column.name.bytes)) {
                    builder.add(column);
                }
            }
        }
        return builder.build();
    }

    /** Returns the header of a number. */
    SerializationHeader header(int number) throws IOException {
        Numbered[] all = headers;
        if (number < 0 || number >= all.length) {
            throw new IOException("a value uses header " + number + ", but there are only " + all.length);
        }
        return all[number].header;
    }

    /** Returns all columns that rows in the pool may have. */
    RegularAndStaticColumns columns() {
        Numbered last = last();
        return last == null ? RegularAndStaticColumns.NONE : last.header.columns();
    }

    private Numbered last() {
        Numbered[] all = headers;
        return all.length == 0 ? null : all[all.length - 1];
    }

    private void add(Numbered one) {
        Numbered[] more = Arrays.copyOf(headers, headers.length + 1);
        more[one.number] = one;
        headers = more;
    }

    private static byte[] bytes(SerializationHeader header) {
        try (DataOutputBuffer out = new DataOutputBuffer()) {
            SerializationHeader.serializer.serialize(null, header.toComponent(), out);
            return out.toByteArray();
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }

    private SerializationHeader parse(byte[] bytes) {
        try (DataInputBuffer in = new DataInputBuffer(bytes)) {
            return SerializationHeader.serializer.deserialize(null, in).toHeader(metadata.get());
        } catch (IOException damaged) {
            throw new UncheckedIOException(damaged);
        }
    }
}

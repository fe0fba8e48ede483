package io.github.wollemi.cassandra;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.Iterator;
import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.MutableDeletionInfo;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.rows.BTreeRow;
import org.apache.cassandra.db.rows.DeserializationHelper;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.SerializationHelper;
import org.apache.cassandra.db.rows.UnfilteredSerializer;
import org.apache.cassandra.io.util.DataInputBuffer;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.net.MessagingService;
import org.apache.cassandra.schema.TableMetadata;

/**
 * The values of a pool: the number of a header, as a variable-length integer, and the output of Cassandra's serializers
 * for a row or for deletions with that header.
 */
final class Codec {
    /** The version of Cassandra's serializers used for pools, whatever version the node uses with other nodes. */
    static final int SERIALIZERS = MessagingService.VERSION_50;

    private static final int PARTITION_DELETION = 1;
    private static final UnfilteredSerializer ROWS = UnfilteredSerializer.serializer;
    private static final ThreadLocal<DataOutputBuffer> OUT = ThreadLocal.withInitial(() -> new DataOutputBuffer(512));
    /** A larger buffer is not kept. */
    private static final int KEPT_BUFFER = 1 << 20;

    private Codec() {}

    /** Writes a value. */
    private interface Body {
        void write(DataOutputBuffer out) throws IOException;
    }

    private static byte[] encode(Schema.Numbered schema, Body body) {
        DataOutputBuffer out = OUT.get();
        out.clear();
        try {
            out.writeUnsignedVInt32(schema.number());
            body.write(out);
            return out.toByteArray();
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        } finally {
            if (out.getLength() > KEPT_BUFFER) {
                OUT.remove();
            }
        }
    }

    static byte[] row(Row row, Schema.Numbered schema) {
        return encode(schema, out -> {
            ROWS.serialize(row, new SerializationHelper(schema.header()), out, 0, SERIALIZERS);
            // Reading skips rows that are empty after columns were dropped, and continues to this marker.
            ROWS.writeEndOfPartition(out);
        });
    }

    static byte[] statics(Row row, Schema.Numbered schema) {
        return encode(schema,
                out -> ROWS.serializeStaticRow(row, new SerializationHelper(schema.header()), out, SERIALIZERS));
    }

    static byte[] deletion(DeletionInfo deletion, Schema.Numbered schema) {
        return encode(schema, out -> {
            SerializationHeader header = schema.header();
            DeletionTime partition = deletion.getPartitionDeletion();
            out.writeByte(partition.isLive() ? 0 : PARTITION_DELETION);
            if (!partition.isLive()) {
                header.writeDeletionTime(partition, out);
            }
            out.writeUnsignedVInt32(deletion.rangeCount());
            for (Iterator<RangeTombstone> ranges = deletion.rangeIterator(false); ranges.hasNext();) {
                RangeTombstone range = ranges.next();
                Slice.serializer.serialize(range.deletedSlice(), out, SERIALIZERS, header.clusteringTypes());
                header.writeDeletionTime(range.deletionTime(), out);
            }
        });
    }

    /** Reads a value. */
    private interface Reading<T> {
        T read(DataInputBuffer in, SerializationHeader header) throws IOException;
    }

    private static <T> T decode(ByteBuffer value, Schema schema, Reading<T> reading) {
        try (DataInputBuffer in = new DataInputBuffer(value, true)) {
            return reading.read(in, schema.header(in.readUnsignedVInt32()));
        } catch (IOException damaged) {
            throw new UncheckedIOException(damaged);
        }
    }

    /** Returns the row, or null if all of its columns have been dropped since. */
    static Row row(ByteBuffer value, Schema schema, TableMetadata metadata) {
        return decode(value, schema,
                (in, header) -> (Row) ROWS.deserialize(in, header, helper(metadata), BTreeRow.sortedBuilder()));
    }

    static Row statics(ByteBuffer value, Schema schema, TableMetadata metadata) {
        return decode(value, schema, (in, header) -> ROWS.deserializeStaticRow(in, header, helper(metadata)));
    }

    static DeletionInfo deletion(ByteBuffer value, Schema schema, TableMetadata metadata) {
        return decode(value, schema, (in, header) -> {
            boolean partition = in.readByte() == PARTITION_DELETION;
            MutableDeletionInfo deletion =
                    new MutableDeletionInfo(partition ? header.readDeletionTime(in) : DeletionTime.LIVE);
            for (int left = in.readUnsignedVInt32(); left > 0; left--) {
                Slice slice = Slice.serializer.deserialize(in, SERIALIZERS, header.clusteringTypes());
                deletion.add(new RangeTombstone(slice, header.readDeletionTime(in)), metadata.comparator);
            }
            return deletion;
        });
    }

    private static DeserializationHelper helper(TableMetadata metadata) {
        return new DeserializationHelper(metadata, SERIALIZERS, DeserializationHelper.Flag.PRESERVE_SIZE);
    }
}

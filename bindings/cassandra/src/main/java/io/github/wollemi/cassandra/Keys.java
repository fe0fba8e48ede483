package io.github.wollemi.cassandra;

import io.github.wollemi.Database;
import io.github.wollemi.ReadableMap;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.cassandra.db.BufferDecoratedKey;
import org.apache.cassandra.db.ClusteringComparator;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.dht.IPartitioner;
import org.apache.cassandra.utils.bytecomparable.ByteComparable;
import org.apache.cassandra.utils.bytecomparable.ByteSourceInverse;

/**
 * The keys of a pool.
 *
 * <p>A partition's keys begin with its token and key in Cassandra's byte-comparable form, which is no prefix of another
 * partition's. {@link #DELETION}, {@link #STATIC}, or a row's clustering in that form follows; the clustering's first
 * byte is above these two and below {@link #BEHIND}. So the keys are in Cassandra's reading order: by partitions, and
 * in each the deletions, the static row, the rows.
 */
final class Keys {
    /** The version of the byte-comparable form. Pools depend on it. */
    static final ByteComparable.Version VERSION = ByteComparable.Version.OSS50;

    /** Follows the partition's bytes in the key of its deletion and range deletions. */
    static final byte DELETION = 0;
    /** Follows the partition's bytes in the key of its static row. */
    static final byte STATIC = 1;
    /** Above every byte that can follow the partition's bytes. */
    private static final byte BEHIND = (byte) 0xff;

    private Keys() {}

    /** Returns the bytes with which all keys of a partition begin. */
    static byte[] partition(DecoratedKey key) {
        return ByteSourceInverse.readBytes(key.asComparableBytes(VERSION));
    }

    static byte[] deletion(byte[] partition) {
        return with(partition, DELETION);
    }

    static byte[] statics(byte[] partition) {
        return with(partition, STATIC);
    }

    /** Returns a bound above all keys of a partition and below those of the next. */
    static byte[] behind(byte[] partition) {
        return with(partition, BEHIND);
    }

    /** Returns the key of a row. It may be too long for a pool. */
    static byte[] row(byte[] partition, ClusteringComparator comparator, ClusteringPrefix<?> clustering) {
        byte[] behind = ByteSourceInverse.readBytes(comparator.asByteComparable(clustering).asComparableBytes(VERSION));
        byte[] key = Arrays.copyOf(partition, partition.length + behind.length);
        System.arraycopy(behind, 0, key, partition.length, behind.length);
        return key;
    }

    /** Returns whether a pool can have keys of a partition: SSTables may have partitions whose keys are too long. */
    static boolean fits(byte[] partition) {
        return partition.length < Database.maxKey();
    }

    /**
     * Cuts a bound to the length of the longest key. A cut bound divides the keys of a pool as the whole one does: none
     * of them is a prefix of a bound, so each differs from the bound in the bytes that are left.
     */
    private static byte[] cut(byte[] bound) {
        return bound.length <= Database.maxKey() ? bound : Arrays.copyOf(bound, Database.maxKey());
    }

    /** Returns a bound between the rows of a partition. */
    static byte[] bound(byte[] partition, ClusteringComparator comparator, ClusteringPrefix<?> clustering) {
        return cut(row(partition, comparator, clustering));
    }

    /** Returns a lower bound for the partitions from a position on. */
    static byte[] lower(PartitionPosition position, boolean inclusive) {
        byte[] bytes = ByteSourceInverse.readBytes(position.asComparableBytes(VERSION));
        return cut(inclusive || !(position instanceof DecoratedKey) ? bytes : with(bytes, BEHIND));
    }

    /** Returns an upper bound for the partitions up to a position. */
    static byte[] upper(PartitionPosition position, boolean inclusive) {
        return lower(position, !inclusive);
    }

    /** Returns the partition that a key belongs to. */
    static DecoratedKey decorated(byte[] key, IPartitioner partitioner) {
        return BufferDecoratedKey.fromByteComparable(ByteComparable.fixedLength(key), VERSION, partitioner);
    }

    /** Returns whether a key belongs to a partition. */
    static boolean belongs(ByteBuffer key, byte[] partition) {
        return key.remaining() > partition.length && key.mismatch(ByteBuffer.wrap(partition)) == partition.length;
    }

    /** Returns the value of a row's key, or null if there is none. */
    static byte[] find(ReadableMap view, byte[] row) {
        return row.length <= Database.maxKey() ? view.get(row) : null;
    }

    private static byte[] with(byte[] bytes, byte last) {
        byte[] longer = Arrays.copyOf(bytes, bytes.length + 1);
        longer[bytes.length] = last;
        return longer;
    }
}

package io.github.wollemi.cassandra;

import java.nio.ByteBuffer;
import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.EncodingStats;

/**
 * Bounds that hold for everything in a pool: the smallest timestamps, and whether any partition has deletions.
 *
 * <p>The pool's stored minima are extended before the data that requires it is written, so they may be too low, never
 * too high.
 *
 * @param timestamp the smallest timestamp
 * @param localDeletionTime the smallest local deletion time
 * @param stats the encoding statistics for SSTables that are written from it
 * @param deletions whether there may be partition or range deletions
 */
record Minima(long timestamp, long localDeletionTime, EncodingStats stats, boolean deletions) {
    static final Minima NONE = new Minima(Long.MAX_VALUE, Long.MAX_VALUE, EncodingStats.NO_STATS, false);

    /** Returns these minima combined with an update; returns this object itself if the update changes nothing. */
    Minima and(PartitionUpdate update) {
        EncodingStats other = update.stats();
        DeletionInfo deletion = update.deletionInfo();
        Minima both = new Minima(
                Math.min(timestamp, other.minTimestamp),
                Math.min(localDeletionTime, other.minLocalDeletionTime),
                stats.mergeWith(other),
                deletions || !deletion.isLive());
        return both.equals(this) ? this : both;
    }

    byte[] bytes() {
        return ByteBuffer.allocate(4 * Long.BYTES + Integer.BYTES + 1)
                .putLong(timestamp).putLong(localDeletionTime)
                .putLong(stats.minTimestamp).putLong(stats.minLocalDeletionTime).putInt(stats.minTTL)
                .put((byte) (deletions ? 1 : 0))
                .array();
    }

    static Minima of(byte[] bytes) {
        ByteBuffer in = ByteBuffer.wrap(bytes);
        return new Minima(in.getLong(), in.getLong(), new EncodingStats(in.getLong(), in.getLong(), in.getInt()),
                in.get() == 1);
    }

    /** Returns the smallest timestamp as a memtable reports it. */
    long reported() {
        return timestamp == EncodingStats.NO_STATS.minTimestamp ? Memtable.NO_MIN_TIMESTAMP : timestamp;
    }
}

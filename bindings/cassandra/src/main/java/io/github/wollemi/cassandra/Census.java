package io.github.wollemi.cassandra;

import java.util.Iterator;
import org.apache.cassandra.db.partitions.Partition;

/**
 * A count of partitions.
 *
 * @param partitions the number of partitions
 * @param keyBytes the total length of their keys
 */
record Census(long partitions, long keyBytes) {
    static final Census NONE = new Census(0, 0);

    static Census of(Iterator<? extends Partition> partitions) {
        long count = 0;
        long bytes = 0;
        for (; partitions.hasNext(); count++) {
            bytes += partitions.next().partitionKey().getKeyLength();
        }
        return new Census(count, bytes);
    }

    Census plus(Census other) {
        return new Census(partitions + other.partitions, keyBytes + other.keyBytes);
    }
}

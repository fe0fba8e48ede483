package io.github.wollemi.cassandra;

import java.util.Iterator;
import org.apache.cassandra.db.partitions.Partition;

/**
 * The number of partitions and the size of their keys.
 *
 * @param partitions their number
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

    Census and(Census other) {
        return new Census(partitions + other.partitions, keyBytes + other.keyBytes);
    }
}

package io.github.wollemi;

import java.util.ArrayList;
import java.util.List;

/** The source of a view: a map as it is, in a snapshot, or as a transaction sees it. */
interface Source {
    byte[] get(byte[] key);

    default boolean containsKey(byte[] key) {
        return get(key) != null;
    }

    default List<byte[]> multiGet(List<byte[]> keys) {
        List<byte[]> values = new ArrayList<>(keys.size());
        for (byte[] key : keys) {
            values.add(get(key));
        }
        return values;
    }

    /**
     * Returns the next entries between the bounds after the key {@code after} (null: from the beginning), at most
     * {@code limit}; packed, after one byte that is 1 if more may follow.
     */
    byte[] fetch(Bounds bounds, byte[] after, boolean reverse, int limit);

    /** Returns the number of entries, or a negative number if they must be visited to count them. */
    default long count() {
        return -1;
    }

    /** Returns the size of a cursor's first batch. */
    default int firstBatch() {
        return 16;
    }
}

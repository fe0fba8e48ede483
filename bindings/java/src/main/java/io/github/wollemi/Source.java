package io.github.wollemi;

import java.util.ArrayList;
import java.util.List;

/** What a view reads from: a map as it is, as a snapshot has it, or as a transaction sees it. */
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
     * The next entries between the bounds behind the key {@code after} (null: from the beginning), at most so many; packed,
     * behind one byte that is 1 if there may be more.
     */
    byte[] fetch(Bounds bounds, byte[] after, boolean reverse, int limit);

    /** The number of entries; negative: it must be found by visiting them. */
    default long count() {
        return -1;
    }

    /** How many entries a cursor takes the first time. */
    default int firstBatch() {
        return 16;
    }
}

package io.github.wollemi;

import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.List;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * A readable ordered map from bytes to bytes: a {@link DurableMap}, its view in a {@link Snapshot} or a {@link
 * Transaction}, or a bounded or descending view of one of these. The methods have the names of {@link
 * java.util.NavigableMap}.
 *
 * <p>Keys are ordered by their bytes as unsigned numbers, as {@link java.util.Arrays#compareUnsigned(byte[], byte[])} does.
 * A map whose index keeps no order ({@link DurableMap#isOrdered}) has no views, no first or last entry, and no
 * neighbours of keys ({@link UnsupportedOperationException}).
 *
 * <p>Views cost nothing: they show the map's content whenever they are read. Crossed bounds are an empty view.
 */
public interface ReadableMap extends Iterable<Entry> {
    /**
     * Returns the value of a key.
     *
     * @param key the key
     * @return its value, or null if the key is absent
     */
    byte[] get(byte[] key);

    /**
     * Copies the value of a key into a buffer, from its position on, and moves the position behind it. If the value is
     * longer than the remaining space, nothing is copied. With two direct buffers nothing is allocated on Java's heap.
     *
     * @param key the key: the remaining bytes of this buffer, which is not changed
     * @param into the buffer
     * @return the value's length, or -1 if the key is absent
     */
    default int get(ByteBuffer key, ByteBuffer into) {
        byte[] value = get(Buffers.bytes(key));
        if (value == null) {
            return -1;
        }
        if (value.length <= into.remaining()) {
            into.put(value);
        }
        return value.length;
    }

    /**
     * Returns whether a key is present.
     *
     * @param key the key
     * @return whether it is
     */
    boolean containsKey(byte[] key);

    /**
     * Returns the values of many keys. Faster than single {@link #get(byte[])}s: one call crosses to the native
     * library, and the keys' cache misses overlap.
     *
     * @param keys the keys, none of them null
     * @return their values in the same order, null for a key that is absent
     */
    List<byte[]> multiGet(List<byte[]> keys);

    /**
     * Returns the first entry, in the order of this view.
     *
     * @return the entry, or null if there is none
     */
    Entry firstEntry();

    /**
     * Returns the last entry, in the order of this view.
     *
     * @return the entry, or null if there is none
     */
    Entry lastEntry();

    /**
     * Returns the last entry at or before a key.
     *
     * @param key the key
     * @return the entry, or null if there is none
     */
    default Entry floorEntry(byte[] key) {
        return headMap(key, true).lastEntry();
    }

    /**
     * Returns the last entry before a key.
     *
     * @param key the key
     * @return the entry, or null if there is none
     */
    default Entry lowerEntry(byte[] key) {
        return headMap(key, false).lastEntry();
    }

    /**
     * Returns the first entry at or after a key.
     *
     * @param key the key
     * @return the entry, or null if there is none
     */
    default Entry ceilingEntry(byte[] key) {
        return tailMap(key, true).firstEntry();
    }

    /**
     * Returns the first entry after a key.
     *
     * @param key the key
     * @return the entry, or null if there is none
     */
    default Entry higherEntry(byte[] key) {
        return tailMap(key, false).firstEntry();
    }

    /**
     * Returns a view of the entries between two keys.
     *
     * @param from the first key, in the order of this view
     * @param fromInclusive whether to include it
     * @param to the last key
     * @param toInclusive whether to include it
     * @return a view
     */
    default ReadableMap subMap(byte[] from, boolean fromInclusive, byte[] to, boolean toInclusive) {
        return tailMap(from, fromInclusive).headMap(to, toInclusive);
    }

    /**
     * Returns a view of the entries before a key.
     *
     * @param to the last key, in the order of this view
     * @param inclusive whether to include it
     * @return a view
     */
    ReadableMap headMap(byte[] to, boolean inclusive);

    /**
     * Returns a view of the entries after a key.
     *
     * @param from the first key, in the order of this view
     * @param inclusive whether to include it
     * @return a view
     */
    ReadableMap tailMap(byte[] from, boolean inclusive);

    /**
     * Returns a view of the entries whose keys start with a prefix.
     *
     * @param prefix the prefix
     * @return a view
     */
    ReadableMap prefixMap(byte[] prefix);

    /**
     * Returns a view of the same entries in the opposite order.
     *
     * @return a view
     */
    ReadableMap descendingMap();

    /**
     * Returns the number of entries. There is no counter: the call visits each entry. Exact if no thread writes
     * meanwhile.
     *
     * @return their number
     */
    long count();

    /**
     * Returns whether there is no entry.
     *
     * @return whether there is none
     */
    boolean isEmpty();

    /**
     * Returns a cursor over the entries, in the order of this view.
     *
     * @return a cursor before the first entry
     */
    Cursor cursor();

    @Override
    default Iterator<Entry> iterator() {
        return cursor();
    }

    /**
     * Returns the entries in the order of this view, as a sequential stream.
     *
     * @return a stream
     */
    default Stream<Entry> stream() {
        int traits = Spliterator.ORDERED | Spliterator.NONNULL | Spliterator.DISTINCT;
        return StreamSupport.stream(Spliterators.spliteratorUnknownSize(iterator(), traits), false);
    }
}

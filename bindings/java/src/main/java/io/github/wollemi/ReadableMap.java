package io.github.wollemi;

import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.List;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * An ordered map from bytes to bytes to read: a {@link DurableMap}, one as a {@link Snapshot} has it or as a
 * {@link Transaction} sees it, or a view of one of these, bounded or descending. The methods are named as those of
 * {@link java.util.NavigableMap} are.
 *
 * <p>Keys are ordered by their bytes as unsigned numbers, as {@link java.util.Arrays#compareUnsigned(byte[], byte[])} does.
 * A map whose index keeps no order ({@link DurableMap#isOrdered}) has no views, ends or neighbours of keys
 * ({@link UnsupportedOperationException}).
 *
 * <p>Views cost nothing: they show what the map holds whenever they are read. Bounds that cross are an empty view.
 */
public interface ReadableMap extends Iterable<Entry> {
    /**
     * The value of a key.
     *
     * @param key the key
     * @return its value, or null if the key is absent
     */
    byte[] get(byte[] key);

    /**
     * Copies the value of a key into a buffer, if it has room: from its position on, which then moves behind it. If the
     * value is longer than what is left in the buffer, nothing is copied. Between direct buffers nothing is allocated on
     * Java's heap.
     *
     * @param key the key: what is left in this buffer, which stays as it is
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
     * Whether a key is present.
     *
     * @param key the key
     * @return whether it is
     */
    boolean containsKey(byte[] key);

    /**
     * The values of many keys. Faster than as many {@link #get(byte[])}s: one call crosses to the native library, and the
     * keys' cache misses overlap.
     *
     * @param keys the keys, none of them null
     * @return their values in the same order, null for a key that is absent
     */
    List<byte[]> multiGet(List<byte[]> keys);

    /**
     * The first entry, in the order of this view.
     *
     * @return the entry, or null if there is none
     */
    Entry firstEntry();

    /**
     * The last entry, in the order of this view.
     *
     * @return the entry, or null if there is none
     */
    Entry lastEntry();

    /**
     * The last entry before a key, or the key's own.
     *
     * @param key the key
     * @return the entry, or null if there is none
     */
    default Entry floorEntry(byte[] key) {
        return headMap(key, true).lastEntry();
    }

    /**
     * The last entry before a key.
     *
     * @param key the key
     * @return the entry, or null if there is none
     */
    default Entry lowerEntry(byte[] key) {
        return headMap(key, false).lastEntry();
    }

    /**
     * The first entry after a key, or the key's own.
     *
     * @param key the key
     * @return the entry, or null if there is none
     */
    default Entry ceilingEntry(byte[] key) {
        return tailMap(key, true).firstEntry();
    }

    /**
     * The first entry after a key.
     *
     * @param key the key
     * @return the entry, or null if there is none
     */
    default Entry higherEntry(byte[] key) {
        return tailMap(key, false).firstEntry();
    }

    /**
     * The entries between two keys.
     *
     * @param from where it begins, in the order of this view
     * @param fromInclusive whether that key belongs to it
     * @param to where it ends
     * @param toInclusive whether that key belongs to it
     * @return a view
     */
    default ReadableMap subMap(byte[] from, boolean fromInclusive, byte[] to, boolean toInclusive) {
        return tailMap(from, fromInclusive).headMap(to, toInclusive);
    }

    /**
     * The entries before a key.
     *
     * @param to where it ends, in the order of this view
     * @param inclusive whether that key belongs to it
     * @return a view
     */
    ReadableMap headMap(byte[] to, boolean inclusive);

    /**
     * The entries after a key.
     *
     * @param from where it begins, in the order of this view
     * @param inclusive whether that key belongs to it
     * @return a view
     */
    ReadableMap tailMap(byte[] from, boolean inclusive);

    /**
     * The entries whose keys start with a prefix.
     *
     * @param prefix the prefix
     * @return a view
     */
    ReadableMap prefixMap(byte[] prefix);

    /**
     * The same entries in the other order.
     *
     * @return a view
     */
    ReadableMap descendingMap();

    /**
     * The number of entries. No number is kept: the call visits each entry. Exact if nobody writes meanwhile.
     *
     * @return their number
     */
    long count();

    /**
     * Whether there is no entry.
     *
     * @return whether there is none
     */
    boolean isEmpty();

    /**
     * A cursor over the entries, in the order of this view.
     *
     * @return a cursor before the first entry
     */
    Cursor cursor();

    @Override
    default Iterator<Entry> iterator() {
        return cursor();
    }

    /**
     * The entries in the order of this view, as a sequential stream.
     *
     * @return a stream
     */
    default Stream<Entry> stream() {
        int traits = Spliterator.ORDERED | Spliterator.NONNULL | Spliterator.DISTINCT;
        return StreamSupport.stream(Spliterators.spliteratorUnknownSize(iterator(), traits), false);
    }
}

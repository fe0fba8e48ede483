package io.github.wollemi;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * An ordered map from bytes to bytes to read and write: a {@link DurableMap}, or one as a {@link Transaction} sees it.
 * Keys have at most 65,535 bytes, values 64 MiB.
 */
public interface WritableMap extends ReadableMap {
    /**
     * Gives a key a value, whether it is there or not.
     *
     * @param key the key
     * @param value its value
     */
    void put(byte[] key, byte[] value);

    /**
     * Gives a key a value, whether it is there or not. Both are what is left in the buffers, which stay as they are; of
     * direct ones nothing is allocated on Java's heap.
     *
     * @param key the key
     * @param value its value
     */
    default void put(ByteBuffer key, ByteBuffer value) {
        put(Buffers.bytes(key), Buffers.bytes(value));
    }

    /**
     * Adds a key if it is absent.
     *
     * @param key the key
     * @param value its value
     * @return whether it was absent
     */
    boolean putIfAbsent(byte[] key, byte[] value);

    /**
     * Changes the value of a key if it is present.
     *
     * @param key the key
     * @param value its value
     * @return whether it was present
     */
    default boolean replace(byte[] key, byte[] value) {
        boolean present = containsKey(key);
        if (present) {
            put(key, value);
        }
        return present;
    }

    /**
     * Replaces a value by another, either of which may be absent (null).
     *
     * @param key the key
     * @param expected what it must hold; null: it must be absent
     * @param value what it shall hold; null: it shall be absent
     * @return whether it held what was expected; if not, nothing was changed
     */
    default boolean compareAndSet(byte[] key, byte[] expected, byte[] value) {
        boolean expectedly = Arrays.equals(get(key), expected);
        if (expectedly && value != null) {
            put(key, value);
        } else if (expectedly && expected != null) {
            remove(key);
        }
        return expectedly;
    }

    /**
     * Removes a key.
     *
     * @param key the key
     * @return whether it was present
     */
    boolean remove(byte[] key);
}

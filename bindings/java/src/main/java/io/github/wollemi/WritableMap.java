package io.github.wollemi;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * A readable and writable ordered map from bytes to bytes: a {@link DurableMap}, or its view in a {@link Transaction}.
 * Keys have at most 65,535 bytes, values 64 MiB.
 */
public interface WritableMap extends ReadableMap {
    /**
     * Sets a key's value, whether or not the key is present.
     *
     * @param key the key
     * @param value its value
     */
    void put(byte[] key, byte[] value);

    /**
     * Sets a key's value, whether or not the key is present. Both are the remaining bytes of the buffers, which are not
     * changed; for direct buffers nothing is allocated on Java's heap.
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
     * Replaces the value of a key if it is present.
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
     * Replaces a value by another, each of which may be null for an absent key.
     *
     * @param key the key
     * @param expected the expected value; null: the key must be absent
     * @param value the new value; null: remove the key
     * @return whether the value was as expected; if not, nothing was changed
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

package io.github.wollemi;

import java.util.Arrays;

/**
 * A key and its value. Two entries are equal if their bytes are.
 *
 * @param key the key
 * @param value its value
 */
public record Entry(byte[] key, byte[] value) {
    @Override
    public boolean equals(Object other) {
        return other instanceof Entry entry
                && Arrays.equals(key, entry.key) && Arrays.equals(value, entry.value);
    }

    @Override
    public int hashCode() {
        return 31 * Arrays.hashCode(key) + Arrays.hashCode(value);
    }

    /** Prints printable ASCII unchanged, and other bytes as {@code \xff}. */
    @Override
    public String toString() {
        return escape(key) + "=" + escape(value);
    }

    private static String escape(byte[] bytes) {
        var text = new StringBuilder(bytes.length);
        for (byte b : bytes) {
            if (b >= ' ' && b < 0x7f) {
                text.append((char) b);
            } else {
                text.append(String.format("\\x%02x", b));
            }
        }
        return text.toString();
    }
}

package io.github.wollemi;

import java.nio.ByteBuffer;
import java.util.List;

/** Bytes of text and numbers, for the tests. */
final class Bytes {
    private Bytes() {}

    static byte[] of(String text) {
        return Packed.utf8(text);
    }

    /** Eight bytes, in whose order numbers that are not negative are ordered. */
    static byte[] of(long number) {
        return ByteBuffer.allocate(Long.BYTES).putLong(number).array();
    }

    static long number(byte[] bytes) {
        return ByteBuffer.wrap(bytes).getLong();
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : Packed.text(bytes);
    }

    /** The entries of a view, as text. */
    static List<String> all(ReadableMap view) {
        return view.stream().map(Entry::toString).toList();
    }

    /** Seed of a random test: that of the environment, or a new one; printed. */
    static long seed(String test) {
        String given = System.getenv("WOLLEMI_SEED");
        long seed = given != null ? Long.parseLong(given) : System.nanoTime();
        System.out.println(test + ": WOLLEMI_SEED=" + seed);
        return seed;
    }
}

package io.github.wollemi;

import java.nio.ByteBuffer;
import java.util.List;

/** Bytes of text and numbers, for the tests. */
final class Bytes {
    private Bytes() {}

    static byte[] of(String text) {
        return Packed.utf8(text);
    }

    /** Returns eight bytes whose order is that of non-negative numbers. */
    static byte[] of(long number) {
        return ByteBuffer.allocate(Long.BYTES).putLong(number).array();
    }

    static long number(byte[] bytes) {
        return ByteBuffer.wrap(bytes).getLong();
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : Packed.text(bytes);
    }

    /** Returns the entries of a view, as text. */
    static List<String> all(ReadableMap view) {
        return view.stream().map(Entry::toString).toList();
    }

    /** Returns the seed of a random test, from the environment or new, and prints it. */
    static long seed(String test) {
        String given = System.getenv("WOLLEMI_SEED");
        long seed = given != null ? Long.parseLong(given) : System.nanoTime();
        System.out.println(test + ": WOLLEMI_SEED=" + seed);
        return seed;
    }
}

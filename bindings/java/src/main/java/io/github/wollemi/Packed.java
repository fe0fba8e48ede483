package io.github.wollemi;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * Byte strings packed in one array, as passed to and from the native library: for each its length (four bytes, big
 * endian, -1 if it is absent), and its bytes.
 */
final class Packed {
    private final byte[] bytes;
    private final ByteBuffer lengths;
    private int at;

    /** Reads a packed array from its beginning. */
    Packed(byte[] bytes) {
        this.bytes = bytes;
        this.lengths = ByteBuffer.wrap(bytes);
    }

    boolean hasNext() {
        return at < bytes.length;
    }

    /** Returns the next byte string; null if it is absent. */
    byte[] next() {
        int length = skip();
        if (length < 0) {
            return null;
        }
        byte[] next = new byte[length];
        System.arraycopy(bytes, at - length, next, 0, length);
        return next;
    }

    /** Returns the next one as a buffer over the packed array. */
    ByteBuffer nextBuffer() {
        int length = skip();
        return ByteBuffer.wrap(bytes, at - length, length).slice().asReadOnlyBuffer();
    }

    /** Returns the next one as text. */
    String text() {
        return text(next());
    }

    /** Returns the next one as a number of eight bytes. */
    long number() {
        return ByteBuffer.wrap(next()).getLong();
    }

    private int skip() {
        int length = lengths.getInt(at);
        at += Integer.BYTES + Math.max(length, 0);
        return length;
    }

    static byte[] pack(List<byte[]> all) {
        long size = 0;
        for (byte[] one : all) {
            size += Integer.BYTES + (one == null ? 0 : one.length);
        }
        if (size > Integer.MAX_VALUE - 8) {
            throw new IllegalArgumentException(size + " bytes in one call: at most 2 GiB");
        }
        ByteBuffer packed = ByteBuffer.allocate((int) size);
        for (byte[] one : all) {
            if (one == null) {
                packed.putInt(-1);
            } else {
                packed.putInt(one.length).put(one);
            }
        }
        return packed.array();
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] utf8) {
        return new String(utf8, StandardCharsets.UTF_8);
    }
}

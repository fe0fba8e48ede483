package io.github.wollemi;

import java.net.URLDecoder;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;

/**
 * Byte strings packed in one array, as passed to and from the native library: for each its length (four bytes, big
 * endian, -1 if it is absent), and its bytes.
 */
final class Packed {
    private static final Path ROOT = Path.of("/");

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

    /**
     * Returns the bytes by which the system knows a path. They are taken from its URI, since {@link Path#toString}
     * replaces those that the locale's encoding does not have, and so may name another file.
     */
    static byte[] path(Path path) {
        // A URI is absolute. From the root, a relative path stays relative once the first slash is removed.
        String escaped = ROOT.resolve(path).toUri().getRawPath();
        int begin = path.isAbsolute() ? 0 : 1;
        // The URI of a folder ends with a slash.
        int end = escaped.length() > 1 && escaped.endsWith("/") ? escaped.length() - 1 : escaped.length();
        // The decoder is one for forms, in which a plus is a space.
        String bytes = escaped.substring(begin, end).replace("+", "%2B");
        return URLDecoder.decode(bytes, StandardCharsets.ISO_8859_1).getBytes(StandardCharsets.ISO_8859_1);
    }

    /** Returns a text as UTF-8. Refuses half a surrogate pair, for which {@link String#getBytes} has a question mark. */
    static byte[] utf8(String text) {
        byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
        if (!text(utf8).equals(text)) {
            throw new IllegalArgumentException("'" + text + "' contains half a surrogate pair, which has no UTF-8");
        }
        return utf8;
    }

    static String text(byte[] utf8) {
        return new String(utf8, StandardCharsets.UTF_8);
    }
}

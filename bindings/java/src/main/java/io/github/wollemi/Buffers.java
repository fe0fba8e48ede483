package io.github.wollemi;

import java.nio.ByteBuffer;

/** What is left in buffers, from position to limit. */
final class Buffers {
    private Buffers() {}

    /** A copy. */
    static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(buffer.position(), bytes);
        return bytes;
    }

    /** A copy, but of a direct buffer, which the native library reads itself. */
    static byte[] unlessDirect(ByteBuffer buffer) {
        return buffer.isDirect() ? null : bytes(buffer);
    }

    /** The buffer, if it is direct. */
    static ByteBuffer ifDirect(ByteBuffer buffer) {
        return buffer.isDirect() ? buffer : null;
    }
}

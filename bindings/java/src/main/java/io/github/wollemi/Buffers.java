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

    /** The buffer, if it is direct. Fails where its memory is no more: the native library would not notice. */
    static ByteBuffer ifDirect(ByteBuffer buffer) {
        if (!buffer.isDirect()) {
            return null;
        }
        touch(buffer);
        return buffer;
    }

    /** Reads a byte of the buffer: fails where its memory belongs to an arena that is closed, or to another thread. */
    static void touch(ByteBuffer buffer) {
        if (buffer.hasRemaining()) {
            buffer.get(buffer.position());
        }
    }
}

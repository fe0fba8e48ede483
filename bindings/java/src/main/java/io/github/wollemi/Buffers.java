package io.github.wollemi;

import java.nio.ByteBuffer;

/** The remaining bytes of buffers, from position to limit. */
final class Buffers {
    private Buffers() {}

    /** Returns a copy. */
    static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(buffer.position(), bytes);
        return bytes;
    }

    /** Returns a copy, or null for a direct buffer, which the native library reads itself. */
    static byte[] unlessDirect(ByteBuffer buffer) {
        return buffer.isDirect() ? null : bytes(buffer);
    }

    /** Returns the buffer if it is direct. Fails if its memory was released: the native library would not notice. */
    static ByteBuffer ifDirect(ByteBuffer buffer) {
        if (!buffer.isDirect()) {
            return null;
        }
        touch(buffer);
        return buffer;
    }

    /** Reads a byte of the buffer; fails if its memory belongs to a closed arena, or to another thread. */
    static void touch(ByteBuffer buffer) {
        if (buffer.hasRemaining()) {
            buffer.get(buffer.position());
        }
    }
}

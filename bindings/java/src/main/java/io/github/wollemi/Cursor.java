package io.github.wollemi;

import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * Goes through the entries of a map or a view, as an {@link Iterator} or by {@link #advance}.
 *
 * <p>It takes a bounded batch of entries a call and remembers the last key: between calls it holds nothing of the
 * database, so it may be kept for as long as one likes and need not be closed. Each key that is present all the while is
 * seen once and none twice, and the whole is not one moment's view, unless a {@link Snapshot} is read. In a transaction
 * what was taken in a batch counts as read.
 */
public final class Cursor implements Iterator<Entry>, AutoCloseable {
    private static final int MAX = 256;
    private static final byte[] EMPTY = {};

    private final Source source;
    private final Bounds bounds;
    private final boolean reverse;

    private Packed batch = new Packed(EMPTY);
    private boolean more = true;
    private int limit;
    /** The last key of the batch; what the cursor is at, if anything. */
    private ByteBuffer key;
    private ByteBuffer value;
    private boolean closed;

    Cursor(Source source, Bounds bounds, boolean reverse) {
        this.source = source;
        this.bounds = bounds;
        this.reverse = reverse;
        this.limit = source.firstBatch();
    }

    @Override
    public boolean hasNext() {
        if (closed) {
            throw new IllegalStateException("the cursor is closed");
        }
        if (!batch.hasNext() && more) {
            batch = new Packed(source.fetch(bounds, key == null ? null : Buffers.bytes(key), reverse, limit));
            more = batch.next()[0] == 1;
            limit = Math.min(2 * limit, MAX);
        }
        return batch.hasNext();
    }

    /**
     * Goes to the next entry.
     *
     * @return whether there is one
     */
    public boolean advance() {
        if (!hasNext()) {
            return false;
        }
        key = batch.nextBuffer();
        value = batch.nextBuffer();
        return true;
    }

    /**
     * The key that the cursor is at, without a copy.
     *
     * @return a buffer to be read, which stays as it is when the cursor goes on
     */
    public ByteBuffer key() {
        return at(key);
    }

    /**
     * The value that the cursor is at, without a copy.
     *
     * @return a buffer to be read, which stays as it is when the cursor goes on
     */
    public ByteBuffer value() {
        return at(value);
    }

    private ByteBuffer at(ByteBuffer buffer) {
        if (buffer == null) {
            throw new IllegalStateException("the cursor is at no entry yet: advance it first");
        }
        return buffer.duplicate();
    }

    @Override
    public Entry next() {
        if (!advance()) {
            throw new NoSuchElementException();
        }
        return new Entry(Buffers.bytes(key), Buffers.bytes(value));
    }

    /** Lets go of the batch; the cursor cannot be used any more. */
    @Override
    public void close() {
        closed = true;
        batch = new Packed(EMPTY);
    }
}

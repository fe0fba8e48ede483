package io.github.wollemi;

import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * Iterates over the entries of a map or a view, as an {@link Iterator} or by {@link #advance}.
 *
 * <p>It takes a bounded batch of entries per call and remembers the last key. Between calls it holds nothing of the
 * database, so it may be kept for any time and need not be closed. It returns each key that is present throughout once,
 * and none twice, but is not a view of one moment, unless a {@link Snapshot} is read. In a transaction, all entries of
 * a fetched batch count as read.
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
    /** The current key, if any. At the end of a batch, the next batch begins after it. */
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
     * Advances to the next entry.
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
     * Returns the current key, without a copy.
     *
     * @return a read-only buffer, which stays valid when the cursor advances
     */
    public ByteBuffer key() {
        return at(key);
    }

    /**
     * Returns the current value, without a copy.
     *
     * @return a read-only buffer, which stays valid when the cursor advances
     */
    public ByteBuffer value() {
        return at(value);
    }

    private ByteBuffer at(ByteBuffer buffer) {
        if (buffer == null) {
            throw new IllegalStateException("the cursor has no current entry: advance it first");
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

    /** Releases the batch; the cursor can no longer be used. */
    @Override
    public void close() {
        closed = true;
        batch = new Packed(EMPTY);
    }
}

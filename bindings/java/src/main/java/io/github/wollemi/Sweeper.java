package io.github.wollemi;

/** A thread that removes expired entries, until this is closed. */
public final class Sweeper implements AutoCloseable {
    private final Handle handle;

    Sweeper(Handle handle) {
        this.handle = handle;
    }

    /**
     * Returns the number of entries it has removed.
     *
     * @return their number
     */
    public long removed() {
        return handle.swept(handle.number());
    }

    @Override
    public void close() {
        handle.close();
    }
}

package io.github.wollemi;

/**
 * All maps of a database as they were when it was taken. Close it: while it is open, the first change of each key makes a
 * copy, in memory, of what the key held, and no map can be dropped.
 */
public final class Snapshot implements AutoCloseable {
    private final Handle handle;

    Snapshot(Handle handle) {
        this.handle = handle;
    }

    /**
     * A map as it was. One that was made since is empty. It is read until the snapshot is closed.
     *
     * @param map the map
     * @return a view
     */
    public ReadableMap map(DurableMap map) {
        Handle held = map.handle;
        Source source = new Source() {
            @Override
            public byte[] get(byte[] key) {
                return handle.snapshotGet(handle.number(), held, held.number(), key);
            }

            @Override
            public byte[] fetch(Bounds bounds, byte[] after, boolean reverse, int limit) {
                return handle.snapshotFetch(handle.number(), held, held.number(), bounds.lower(),
                        bounds.lowerInclusive(), bounds.upper(), bounds.upperInclusive(), after, reverse, limit);
            }
        };
        return new MapView(source, Bounds.ALL, false);
    }

    /**
     * Bytes of memory that it takes for what was changed since, roughly.
     *
     * @return their number
     */
    public long memory() {
        return handle.snapshotMemory(handle.number());
    }

    @Override
    public void close() {
        handle.close();
    }
}

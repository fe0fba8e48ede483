package io.github.wollemi;

/**
 * All maps of a database at the moment the snapshot was taken. Close it: while it is open, the first change of each key
 * copies the key's old value into memory, and no map can be dropped.
 */
public final class Snapshot implements AutoCloseable {
    private final Handle handle;

    Snapshot(Handle handle) {
        this.handle = handle;
    }

    /**
     * Returns a map as it was. A map created later is empty. The view is readable until the snapshot is closed.
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
     * Returns the approximate memory held for later changes.
     *
     * @return the number of bytes
     */
    public long memory() {
        return handle.snapshotMemory(handle.number());
    }

    @Override
    public void close() {
        handle.close();
    }
}

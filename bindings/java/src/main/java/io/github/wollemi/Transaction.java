package io.github.wollemi;

/**
 * Reads and changes of any of a database's maps that happen together, atomically, or not at all. It is optimistic: a
 * running one holds no lock, and {@link #commit} fails with a {@link ConflictException} if something it has read was
 * changed. It sees its own changes. {@link Database#transact} runs a transaction again after a conflict.
 *
 * <p>Before its commit it may have read some keys before another writer changed them and others after that. Its results
 * are then discarded, but until then the code in it must tolerate inconsistent values.
 */
public final class Transaction implements AutoCloseable {
    private final Handle handle;

    Transaction(Handle handle) {
        this.handle = handle;
    }

    /**
     * Returns a map as the transaction sees it, to be read and changed until the transaction ends.
     *
     * @param map the map
     * @return a view
     */
    public WritableMap map(DurableMap map) {
        return new Seen(handle, map.handle);
    }

    /** Commits it, if everything it has read is unchanged: it is durable when this returns. */
    public void commit() {
        handle.txCommit(handle.number());
        handle.close();
    }

    /**
     * Checks that everything it has read is unchanged ({@link ConflictException}), and discards it. For callers with a
     * retry loop of their own: an exception in the transaction may result from inconsistent reads.
     */
    public void check() {
        handle.txCheck(handle.number());
        handle.close();
    }

    /** Discards it, unless it was committed. */
    @Override
    public void close() {
        handle.close();
    }

    private static Source source(Handle handle, Handle held) {
        return new Source() {
            @Override
            public byte[] get(byte[] key) {
                return handle.txGet(handle.number(), held, held.number(), key);
            }

            @Override
            public byte[] fetch(Bounds bounds, byte[] after, boolean reverse, int limit) {
                return handle.txFetch(handle.number(), held, held.number(), bounds.lower(), bounds.lowerInclusive(),
                        bounds.upper(), bounds.upperInclusive(), after, reverse, limit);
            }

            /** All fetched entries count as read, so a cursor fetches few at first. */
            @Override
            public int firstBatch() {
                return 1;
            }
        };
    }

    private static final class Seen extends MapView implements WritableMap {
        private final Handle handle;
        private final Handle held;

        Seen(Handle handle, Handle held) {
            super(source(handle, held), Bounds.ALL, false);
            this.handle = handle;
            this.held = held;
        }

        @Override
        public void put(byte[] key, byte[] value) {
            handle.txPut(handle.number(), held, held.number(), key, value);
        }

        @Override
        public boolean putIfAbsent(byte[] key, byte[] value) {
            return handle.txPutIfAbsent(handle.number(), held, held.number(), key, value);
        }

        @Override
        public boolean remove(byte[] key) {
            return handle.txRemove(handle.number(), held, held.number(), key);
        }
    }
}

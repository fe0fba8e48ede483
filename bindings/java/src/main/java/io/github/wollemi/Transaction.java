package io.github.wollemi;

/**
 * Reads and changes of any of a database's maps that happen together, as at one moment, or not at all. It is optimistic: a
 * running one holds no lock, and {@link #commit} fails with a {@link ConflictException} if what it has read was changed.
 * It reads what it has changed itself. {@link Database#transact} runs a transaction again after a conflict.
 *
 * <p>Until it is committed it may have read some keys before another writer changed them and others after it. What it then
 * computes is thrown away; but code in between should bear to see what never was together.
 */
public final class Transaction implements AutoCloseable {
    private final Handle handle;

    Transaction(Handle handle) {
        this.handle = handle;
    }

    /**
     * A map as the transaction sees it, to be read and changed until the transaction ends.
     *
     * @param map the map
     * @return a view
     */
    public WritableMap map(DurableMap map) {
        return new Seen(handle, map.handle);
    }

    /** Commits it, if what it has read is still so: it is durable when this returns. */
    public void commit() {
        handle.txCommit(handle.number());
        handle.close();
    }

    /**
     * Checks that what it has read is still so ({@link ConflictException}), and gives it up: it changes nothing. For those
     * who run a transaction again by themselves: an exception in it may come of what never was together.
     */
    public void check() {
        handle.txCheck(handle.number());
        handle.close();
    }

    /** Gives it up, if it was not committed: it changes nothing. */
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

            /** All that is taken counts as read, so a cursor that is left early takes little. */
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

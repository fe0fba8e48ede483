package io.github.wollemi;

import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Java's reference to an object of the native library: its number, which is never reused.
 *
 * <p>The native library looks each number up, so a call with a closed one, in any thread, is an {@link
 * IllegalStateException} and nothing worse. The methods are instance methods, and take the handles whose numbers they
 * use, so that none of them is collected, and closed, during a call.
 */
final class Handle {
    private static final Cleaner CLEANER = Cleaner.create();

    static {
        String place = Library.load();
        Library.check(place, Library.version(), Packed.text(version()));
    }

    /** State that must not refer to the handle, or the handle would never be collected. */
    private static final class State implements Runnable {
        final AtomicLong number;
        final String what;
        final boolean reported;
        final Throwable opened;

        State(long number, String what, boolean reported) {
            this.number = new AtomicLong(number);
            this.what = what;
            this.reported = reported;
            this.opened = reported ? Leaks.trace() : null;
        }

        /** Closes it. Of several threads, each returns when it is closed. */
        synchronized boolean close() {
            long open = number.getAndSet(0);
            return open != 0 && Handle.close(open);
        }

        /** Called when the handle was collected. Nobody waits for an exception then. */
        @Override
        public void run() {
            boolean closed;
            try {
                closed = close();
            } catch (WollemiException failed) {
                closed = true;
            }
            if (closed && reported) {
                Leaks.report(what, opened);
            }
        }
    }

    private final State state;
    private final Cleaner.Cleanable cleanable;
    /** Keeps the owner from being collected before it. */
    @SuppressWarnings("unused")
    private final Handle owner;

    /** @param reported whether collecting it unclosed is reported as a leak */
    Handle(long number, String what, Handle owner, boolean reported) {
        this.state = new State(number, what, reported);
        this.owner = owner;
        this.cleanable = CLEANER.register(this, state);
    }

    /** Returns its number. */
    long number() {
        long number = state.number.get();
        if (number == 0) {
            throw new IllegalStateException(state.what + " is closed");
        }
        return number;
    }

    /** Closes it; has no effect the second time. */
    void close() {
        try {
            state.close();
        } finally {
            cleanable.clean();
        }
    }

    @Override
    public String toString() {
        return state.what;
    }

    static native byte[] version();

    static native byte[] indexes();

    static native int maxKey();

    static native int maxValue();

    /** Panics, for a test of the resulting exception. */
    static native void panic(byte[] message);

    private static native boolean close(long number);

    static native long open(byte[] path, byte[] options);

    native void abandon(long database);

    native long map(long database, byte[] name, byte[] index, boolean create);

    native byte[] maps(long database);

    native boolean dropMap(long database, byte[] name);

    native byte[] level(long database);

    native void sync(long database);

    native long checkpoint(long database, boolean full);

    native void setDurability(long database, byte[] durability);

    native void setSyncWithin(long database, long millis);

    native byte[] stats(long database);

    native byte[] check(long database);

    native byte[] waitRecovered(long database);

    native long giveBack(long database);

    native long snapshot(long database, long max);

    native boolean commitBatch(long database, byte[] operations, byte[] durability);

    native byte[] get(long map, byte[] key);

    native int getInto(long map, byte[] key, ByteBuffer keyBuffer, int keyOffset, int keyLength,
            ByteBuffer into, int offset, int room);

    native boolean contains(long map, byte[] key);

    native byte[] multiGet(long map, byte[] keys);

    native byte[] fetch(long map, byte[] lower, boolean lowerInclusive, byte[] upper, boolean upperInclusive,
            byte[] after, boolean reverse, int limit);

    native long count(long map);

    native void put(long map, byte[] key, byte[] value);

    native void putFrom(long map, byte[] key, ByteBuffer keyBuffer, int keyOffset, int keyLength,
            byte[] value, ByteBuffer valueBuffer, int offset, int length);

    native boolean putIfAbsent(long map, byte[] key, byte[] value);

    native boolean replace(long map, byte[] key, byte[] value);

    native boolean remove(long map, byte[] key);

    native boolean compareAndSet(long map, byte[] key, byte[] expected, byte[] value);

    native long withDurability(long map, byte[] durability);

    native byte[] indexOf(long map);

    native boolean isOrdered(long map);

    native byte[] snapshotGet(long snapshot, Handle held, long map, byte[] key);

    native byte[] snapshotFetch(long snapshot, Handle held, long map, byte[] lower, boolean lowerInclusive,
            byte[] upper, boolean upperInclusive, byte[] after, boolean reverse, int limit);

    native long snapshotMemory(long snapshot);

    native long begin(long database, byte[] durability, boolean again);

    native byte[] txGet(long tx, Handle held, long map, byte[] key);

    native void txPut(long tx, Handle held, long map, byte[] key, byte[] value);

    native boolean txPutIfAbsent(long tx, Handle held, long map, byte[] key, byte[] value);

    native boolean txRemove(long tx, Handle held, long map, byte[] key);

    native byte[] txFetch(long tx, Handle held, long map, byte[] lower, boolean lowerInclusive,
            byte[] upper, boolean upperInclusive, byte[] after, boolean reverse, int limit);

    native void txCommit(long tx);

    native void txCheck(long tx);

    native byte[] expiringGet(long map, byte[] key);

    native byte[] expiringRead(long map, byte[] held);

    native byte[] expiringBytes(long map, byte[] value, long millis);

    native void expiringPut(long map, byte[] key, byte[] value, long millis);

    native boolean expiringPutIfAbsent(long map, byte[] key, byte[] value, long millis);

    native boolean expiringTouch(long map, byte[] key, long millis);

    native boolean expiringRemove(long map, byte[] key);

    native long sweeper(long map, long pauseMillis);

    native long swept(long sweeper);
}

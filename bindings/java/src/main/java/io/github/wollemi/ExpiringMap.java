package io.github.wollemi;

import java.time.Duration;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * A map in which each entry may have a <em>life</em>, after which it is absent. The clock is the system's. Expiry times
 * survive crashes, as values do. An expired entry takes space until a write of its key or a {@link Sweeper} removes it.
 *
 * <p>The map is not marked as expiring. Of a value that was not written through this class, the first eight bytes are
 * taken for an expiry time; a value that has fewer bytes is an error on read. Batches, transactions and snapshots use
 * the bytes of the underlying map, which {@link #bytes} and {@link #read} convert:
 *
 * <pre>{@code
 * db.batch().put(sessions.map(), alice, sessions.bytes(token, Duration.ofHours(1))).commit();
 * }</pre>
 */
public final class ExpiringMap {
    private static final long WITHOUT_END = -1;

    private final DurableMap map;

    /**
     * Wraps a map.
     *
     * @param map the map; it is empty, or was written only through this class
     */
    public ExpiringMap(DurableMap map) {
        this.map = map;
    }

    /**
     * A value and its remaining life.
     *
     * @param value the value
     * @param left the remaining life; empty: it never expires
     */
    public record Living(byte[] value, Optional<Duration> left) {
        static Living of(byte[] bytes) {
            if (bytes == null) {
                return null;
            }
            Packed packed = new Packed(bytes);
            byte[] value = packed.next();
            Optional<Duration> left = Optional.empty();
            if (packed.hasNext()) {
                left = Optional.of(Duration.ofMillis(packed.number()));
            }
            return new Living(value, left);
        }
    }

    /**
     * Returns the underlying map.
     *
     * @return the map
     */
    public DurableMap map() {
        return map;
    }

    /**
     * Returns the value of a live key.
     *
     * @param key the key
     * @return its value, or null
     */
    public byte[] get(byte[] key) {
        Living living = getLiving(key);
        return living == null ? null : living.value();
    }

    /**
     * Returns the value of a live key, and its remaining life.
     *
     * @param key the key
     * @return both, or null
     */
    public Living getLiving(byte[] key) {
        return Living.of(map.handle.expiringGet(map.handle.number(), key));
    }

    /**
     * Sets a key's value and life.
     *
     * @param key the key
     * @param value its value
     * @param life its life from now on; null: it never expires
     */
    public void put(byte[] key, byte[] value, Duration life) {
        map.handle.expiringPut(map.handle.number(), key, value, millis(life));
    }

    /**
     * Adds a key unless it is alive.
     *
     * @param key the key
     * @param value its value
     * @param life its life from now on; null: it never expires
     * @return whether it was added
     */
    public boolean putIfAbsent(byte[] key, byte[] value, Duration life) {
        return map.handle.expiringPutIfAbsent(map.handle.number(), key, value, millis(life));
    }

    /**
     * Replaces the life of a live key.
     *
     * @param key the key
     * @param life its life from now on; null: it never expires
     * @return whether the key was alive
     */
    public boolean touch(byte[] key, Duration life) {
        return map.handle.expiringTouch(map.handle.number(), key, millis(life));
    }

    /**
     * Removes a key.
     *
     * @param key the key
     * @return whether it was alive
     */
    public boolean remove(byte[] key) {
        return map.handle.expiringRemove(map.handle.number(), key);
    }

    /**
     * Returns the entries of a view of the underlying map (the map itself, a snapshot's, a transaction's) that are
     * alive when the stream reaches them.
     *
     * @param view the view
     * @return a stream in the order of the view
     */
    public Stream<Entry> alive(ReadableMap view) {
        return view.stream().mapMulti((entry, alive) -> {
            Living living = read(entry.value());
            if (living != null) {
                alive.accept(new Entry(entry.key(), living.value()));
            }
        });
    }

    /**
     * Encodes a value as the underlying map stores it.
     *
     * @param value the value
     * @param life its life from now on; null: it never expires
     * @return the bytes to put
     */
    public byte[] bytes(byte[] value, Duration life) {
        return map.handle.expiringBytes(map.handle.number(), value, millis(life));
    }

    /**
     * Decodes a value of the underlying map.
     *
     * @param bytes the stored bytes
     * @return the value and its remaining life; null: it has expired
     */
    public Living read(byte[] bytes) {
        return Living.of(map.handle.expiringRead(map.handle.number(), bytes));
    }

    /**
     * Starts a thread that removes expired entries: it walks the whole map, sleeps, and starts over.
     *
     * @param pause how long it sleeps
     * @return the thread, to be closed
     */
    public Sweeper sweeper(Duration pause) {
        long number = map.handle.sweeper(map.handle.number(), pause.toMillis());
        return new Sweeper(new Handle(number, "a sweeper of " + map, map.handle, true));
    }

    private static long millis(Duration life) {
        return life == null ? WITHOUT_END : Math.max(0, life.toMillis());
    }
}

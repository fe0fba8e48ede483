package io.github.wollemi;

import java.time.Duration;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * A map each of whose entries may be given a <em>life</em>, after which it is absent. The clock is the system's. Ends
 * survive crashes, as values do. An entry past its end takes space until a write of its key or a {@link Sweeper} removes
 * it.
 *
 * <p>A map is of this kind by its use: what was put into it otherwise is refused. Batches, transactions and snapshots have
 * the bytes of the map under it, which {@link #bytes} and {@link #read} convert:
 *
 * <pre>{@code
 * db.batch().put(sessions.map(), alice, sessions.bytes(token, Duration.ofHours(1))).commit();
 * }</pre>
 */
public final class ExpiringMap {
    private static final long WITHOUT_END = -1;

    private final DurableMap map;

    /**
     * A map as one whose entries may end.
     *
     * @param map the map; it is empty, or has been one before
     */
    public ExpiringMap(DurableMap map) {
        this.map = map;
    }

    /**
     * A value, and what is left of its life.
     *
     * @param value the value
     * @param left what is left; empty: it has no end
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
     * The map under it.
     *
     * @return the map
     */
    public DurableMap map() {
        return map;
    }

    /**
     * The value of a key that is alive.
     *
     * @param key the key
     * @return its value, or null
     */
    public byte[] get(byte[] key) {
        Living living = getLiving(key);
        return living == null ? null : living.value();
    }

    /**
     * The value of a key that is alive, and what is left of its life.
     *
     * @param key the key
     * @return both, or null
     */
    public Living getLiving(byte[] key) {
        return Living.of(map.handle.expiringGet(map.handle.number(), key));
    }

    /**
     * Gives a key a value and a life.
     *
     * @param key the key
     * @param value its value
     * @param life its life from now on; null: it has no end
     */
    public void put(byte[] key, byte[] value, Duration life) {
        map.handle.expiringPut(map.handle.number(), key, value, millis(life));
    }

    /**
     * Adds a key if none that is alive is there.
     *
     * @param key the key
     * @param value its value
     * @param life its life from now on; null: it has no end
     * @return whether none was there
     */
    public boolean putIfAbsent(byte[] key, byte[] value, Duration life) {
        return map.handle.expiringPutIfAbsent(map.handle.number(), key, value, millis(life));
    }

    /**
     * Gives a key that is alive another life.
     *
     * @param key the key
     * @param life its life from now on; null: it has no end
     * @return whether one was there
     */
    public boolean touch(byte[] key, Duration life) {
        return map.handle.expiringTouch(map.handle.number(), key, millis(life));
    }

    /**
     * Removes a key.
     *
     * @param key the key
     * @return whether one that is alive was there
     */
    public boolean remove(byte[] key) {
        return map.handle.expiringRemove(map.handle.number(), key);
    }

    /**
     * The entries of a view of the map under it (of the map itself, of a snapshot, of a transaction) that are alive when
     * they are come to.
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
     * What the map under it holds for a value.
     *
     * @param value the value
     * @param life its life from now on; null: it has no end
     * @return the bytes to put
     */
    public byte[] bytes(byte[] value, Duration life) {
        return map.handle.expiringBytes(map.handle.number(), value, millis(life));
    }

    /**
     * The value in what the map under it holds.
     *
     * @param bytes what it holds
     * @return the value and what is left of its life; null: its end has come
     */
    public Living read(byte[] bytes) {
        return Living.of(map.handle.expiringRead(map.handle.number(), bytes));
    }

    /**
     * Starts a thread that removes the entries past their end: it goes through the whole map, rests, and begins again.
     *
     * @param pause how long it rests
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

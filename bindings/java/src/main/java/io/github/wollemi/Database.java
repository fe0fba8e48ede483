package io.github.wollemi;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;

/**
 * A database: one file, the pool, of named maps.
 *
 * <pre>{@code
 * try (var db = Database.open(Path.of("shop.pool"))) {
 *     var prices = db.map("prices");
 *     prices.put("apple".getBytes(), "0.30".getBytes());
 *     for (var entry : prices.prefixMap("ap".getBytes()).descendingMap()) {
 *         System.out.println(entry);
 *     }
 * }
 * }</pre>
 */
public final class Database implements AutoCloseable {
    /** How often {@link #transact} runs a transaction. */
    private static final int TRIES = 100;
    private static final long PAUSE_NANOS = 2_000;
    private static final long LONGEST_PAUSE_NANOS = 5_000_000;

    final Handle handle;

    private Database(Handle handle) {
        this.handle = handle;
    }

    /**
     * Opens the database at a path with the default options; it is created if it is not there.
     *
     * @param path the pool's file
     * @return the database
     */
    public static Database open(Path path) {
        return open(path, Options.DEFAULT);
    }

    /**
     * Opens the database at a path.
     *
     * @param path the pool's file
     * @param options how it is opened
     * @return the database
     */
    public static Database open(Path path, Options options) {
        long number = Handle.open(Packed.utf8(path.toString()), options.packed());
        return new Database(new Handle(number, "the database " + path, null, true));
    }

    /**
     * A database in anonymous memory, which is gone when it is closed.
     *
     * @param options how it is opened
     * @return the database
     */
    public static Database inMemory(Options options) {
        long number = Handle.open(null, options.packed());
        return new Database(new Handle(number, "a database in memory", null, true));
    }

    /**
     * The version of the native library, which is that of the jar.
     *
     * @return the version
     */
    public static String version() {
        return Packed.text(Handle.version());
    }

    /**
     * The names of the indexes that can hold a map, the default first.
     *
     * @return their names
     */
    public static List<String> indexes() {
        Packed packed = new Packed(Handle.indexes());
        List<String> names = new ArrayList<>();
        while (packed.hasNext()) {
            names.add(packed.text());
        }
        return names;
    }

    /**
     * The length of the longest key.
     *
     * @return its length in bytes
     */
    public static int maxKey() {
        return Handle.maxKey();
    }

    /**
     * The length of the longest value.
     *
     * @return its length in bytes
     */
    public static int maxValue() {
        return Handle.maxValue();
    }

    /**
     * The map of a name; it is created if it is not there, with the index that the {@link Options#index options} name.
     *
     * @param name the name, of 1 to 240 bytes of UTF-8
     * @return the map
     */
    public DurableMap map(String name) {
        return map(name, handle.map(handle.number(), Packed.utf8(name), null, true));
    }

    /**
     * The map of a name, held by an index; it is created so if it is not there.
     *
     * @param name the name
     * @param index the index, one of {@link #indexes}
     * @return the map
     */
    public DurableMap map(String name, String index) {
        return map(name, handle.map(handle.number(), Packed.utf8(name), Packed.utf8(index), true));
    }

    /**
     * The map of a name, if there is one.
     *
     * @param name the name
     * @return the map
     */
    public Optional<DurableMap> findMap(String name) {
        long number = handle.map(handle.number(), Packed.utf8(name), null, false);
        return number == 0 ? Optional.empty() : Optional.of(map(name, number));
    }

    private DurableMap map(String name, long number) {
        return new DurableMap(new Handle(number, "map '" + name + "'", handle, false), name);
    }

    /**
     * All maps, by name.
     *
     * @return names, and what holds them
     */
    public List<MapInfo> maps() {
        Packed packed = new Packed(handle.maps(handle.number()));
        List<MapInfo> maps = new ArrayList<>();
        while (packed.hasNext()) {
            maps.add(new MapInfo(packed.text(), packed.text()));
        }
        return maps;
    }

    /**
     * Removes a map and all that it holds. A crash leaves all of it or nothing. While anybody holds a handle of it, or any
     * snapshot, it fails with {@link WollemiException.Kind#IN_USE}.
     *
     * @param name its name
     * @return whether there was one
     */
    public boolean dropMap(String name) {
        return handle.dropMap(handle.number(), Packed.utf8(name));
    }

    /**
     * A batch of changes, all of which happen or none.
     *
     * @return an empty batch
     */
    public Batch batch() {
        return new Batch(handle);
    }

    /**
     * Begins a transaction.
     *
     * @return the transaction, to be committed or closed
     */
    public Transaction begin() {
        return begin(null);
    }

    /**
     * Begins a transaction that is durable as asked for, in a database of level {@link Level#DISK}.
     *
     * @param durability when it is durable; null: as the database's writes are
     * @return the transaction, to be committed or closed
     */
    public Transaction begin(Durability durability) {
        long number = handle.begin(handle.number(), Durability.text(durability));
        return new Transaction(new Handle(number, "a transaction of " + handle, handle, true));
    }

    /**
     * Runs a transaction and commits it; runs it again, up to a hundred times and with pauses of at most 5 ms, when
     * something that it has read was changed meanwhile. Then the {@link ConflictException} is the caller's.
     *
     * <p>An exception of the body gives the transaction up, if what it has read is so. If not, the body is run again: the
     * exception may come of what never was together.
     *
     * @param <R> the body's result
     * @param <X> what the body throws
     * @param body what to do; it may run several times
     * @return what the body has returned
     * @throws X what the body has thrown
     */
    public <R, X extends Exception> R transact(TransactionBody<R, X> body) throws X {
        for (int run = 1;; run++) {
            try (Transaction transaction = begin()) {
                R result;
                try {
                    result = body.run(transaction);
                } catch (ConflictException conflict) {
                    throw conflict;
                } catch (Exception thrown) {
                    checkReads(transaction);
                    throw thrown;
                }
                transaction.commit();
                return result;
            } catch (ConflictException conflict) {
                if (run >= TRIES) {
                    throw conflict;
                }
                long longest = Math.min(LONGEST_PAUSE_NANOS, PAUSE_NANOS << Math.min(run - 1, 30));
                LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(longest));
            }
        }
    }

    /** After an exception in a transaction: another one, if it may come of what never was together. */
    private static void checkReads(Transaction transaction) {
        try {
            transaction.check();
        } catch (IllegalStateException closed) {
            // The body has ended the transaction, or another thread has closed the database: the first exception counts.
        }
    }

    /**
     * All maps as they are now, to be read while others write.
     *
     * @return the snapshot, to be closed
     */
    public Snapshot snapshot() {
        return snapshotWithin(-1);
    }

    /**
     * A snapshot that takes at most so much memory for what is changed while it is open. When it would need more, writers
     * go on, and reading it fails with {@link WollemiException.Kind#SNAPSHOT_OUTGROWN}.
     *
     * @param bytes the most memory that it takes; negative: as much as it needs
     * @return the snapshot, to be closed
     */
    public Snapshot snapshotWithin(long bytes) {
        long number = handle.snapshot(handle.number(), bytes);
        return new Snapshot(new Handle(number, "a snapshot of " + handle, handle, true));
    }

    /** What acknowledged operations survive.
     *
     * @return the level
     */
    public Level level() {
        String name = Packed.text(handle.level(handle.number()));
        for (Level level : Level.values()) {
            if (Options.name(level).equals(name)) {
                return level;
            }
        }
        throw new WollemiException(WollemiException.Kind.OTHER, "level '" + name + "', which this jar does not know");
    }

    /**
     * Returns when all writes are durable that have returned, {@link Durability#EVENTUAL} ones too. At the levels
     * {@code process} and {@code power} they are already.
     */
    public void sync() {
        handle.sync(handle.number());
    }

    /**
     * Takes a checkpoint, of a database of level {@code disk}, so that the log can forget what was written before. The
     * database takes them by itself when the log has grown.
     *
     * @param full whether it has all entries, or what was changed since the last one
     * @return how many entries it has; -1 at other levels, where nothing happens
     */
    public long checkpoint(boolean full) {
        return handle.checkpoint(handle.number(), full);
    }

    /**
     * Sets when writes are durable that say nothing else, in a database of level {@code disk}.
     *
     * @param durability when
     */
    public void setDurability(Durability durability) {
        handle.setDurability(handle.number(), durability.text());
    }

    /**
     * Sets within which time {@link Durability#EVENTUAL} writes are durable, from now on.
     *
     * @param time the time; null: whenever the operating system likes
     */
    public void setSyncWithin(Duration time) {
        handle.setSyncWithin(handle.number(), time == null ? -1 : time.toMillis());
    }

    /**
     * What there is to say without walking the maps.
     *
     * @return figures
     */
    public Stats stats() {
        return Stats.of(handle.stats(handle.number()));
    }

    /**
     * Walks everything and reports what does not fit. Waits for recovery first. Nobody may write meanwhile, or the report
     * may name faults that are none.
     *
     * @return the report
     */
    public Check check() {
        return Check.of(handle.check(handle.number()));
    }

    /**
     * Waits until the search for unused space has ended that follows every opening.
     *
     * @return how it ended: {@code done}, {@code idle} if it was never started, or {@code failed: …}
     */
    public String waitRecovered() {
        return Packed.text(handle.waitRecovered(handle.number()));
    }

    /**
     * Gives the file's free pages back to its file system.
     *
     * @return how many bytes these were
     */
    public long giveBack() {
        return handle.giveBack(handle.number());
    }

    /**
     * Closes the database, and all that belongs to it: maps, transactions, snapshots. Waits for calls of other threads
     * that are under way. When it returns, another process may open the pool.
     */
    @Override
    public void close() {
        handle.close();
    }

    @Override
    public String toString() {
        return handle.toString();
    }
}

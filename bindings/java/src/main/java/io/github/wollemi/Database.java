package io.github.wollemi;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;

/**
 * A database: one file, the pool, with named maps.
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
    /** Maximum number of attempts of {@link #transact}. */
    private static final int TRIES = 100;
    private static final long PAUSE_NANOS = 2_000;
    private static final long LONGEST_PAUSE_NANOS = 5_000_000;

    final Handle handle;

    private Database(Handle handle) {
        this.handle = handle;
    }

    /**
     * Opens the database at a path with the default options, which create it if it is missing.
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
     * @param path the pool's file; the system's bytes for it must be UTF-8, whatever the locale
     * @param options the options
     * @return the database
     */
    public static Database open(Path path, Options options) {
        long number = Handle.open(Packed.path(path), options.packed());
        return new Database(new Handle(number, "the database " + path, null, true));
    }

    /**
     * Opens a database in anonymous memory, which is lost when it is closed.
     *
     * @param options the options
     * @return the database
     */
    public static Database inMemory(Options options) {
        long number = Handle.open(null, options.packed());
        return new Database(new Handle(number, "a database in memory", null, true));
    }

    /**
     * Returns the version of the native library, which is that of the jar.
     *
     * @return the version
     */
    public static String version() {
        return Packed.text(Handle.version());
    }

    /**
     * Returns the names of the indexes that can hold a map, the default first.
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
     * Returns the maximum length of a key.
     *
     * @return the length in bytes
     */
    public static int maxKey() {
        return Handle.maxKey();
    }

    /**
     * Returns the maximum length of a value.
     *
     * @return the length in bytes
     */
    public static int maxValue() {
        return Handle.maxValue();
    }

    /**
     * Returns the map of a name; creates it if it does not exist, with the index of {@link Options#index}.
     *
     * @param name the name, of 1 to 240 bytes of UTF-8
     * @return the map
     */
    public DurableMap map(String name) {
        return map(name, handle.map(handle.number(), Packed.utf8(name), null, true));
    }

    /**
     * Returns the map of a name, held by an index; creates it if it does not exist.
     *
     * @param name the name
     * @param index the index, one of {@link #indexes}
     * @return the map
     */
    public DurableMap map(String name, String index) {
        return map(name, handle.map(handle.number(), Packed.utf8(name), Packed.utf8(index), true));
    }

    /**
     * Returns the map of a name, if it exists.
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
     * Returns all maps, by name.
     *
     * @return their names and indexes
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
     * Removes a map with all entries. A crash leaves all of it or nothing. While a handle to it or any snapshot exists,
     * it fails with {@link WollemiException.Kind#IN_USE}.
     *
     * @param name its name
     * @return whether it existed
     */
    public boolean dropMap(String name) {
        return handle.dropMap(handle.number(), Packed.utf8(name));
    }

    /**
     * Creates a batch of changes, all of which happen or none.
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
     * Begins a transaction with a durability, in a database of level {@link Level#DISK}.
     *
     * @param durability its durability; null: the default of the database
     * @return the transaction, to be committed or closed
     */
    public Transaction begin(Durability durability) {
        return begin(durability, false);
    }

    /** @param again whether it runs again what has met a conflict: then writes of other keys cannot fail it */
    private Transaction begin(Durability durability, boolean again) {
        long number = handle.begin(handle.number(), Durability.text(durability), again);
        return new Transaction(new Handle(number, "a transaction of " + handle, handle, true));
    }

    /**
     * Runs a transaction and commits it. If something it has read was changed meanwhile, runs it again, up to a hundred
     * times with pauses of at most 5 ms; then throws the {@link ConflictException}.
     *
     * <p>An exception of the body abandons the transaction, if everything it read is still valid. If not, the body runs
     * again: the exception may result from inconsistent reads.
     *
     * @param <R> the body's result
     * @param <X> the body's exception
     * @param body the body; it may run several times
     * @return the body's result
     * @throws X the body's exception
     */
    public <R, X extends Exception> R transact(TransactionBody<R, X> body) throws X {
        for (int run = 1;; run++) {
            try (Transaction transaction = begin(null, run > 1)) {
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

    /** After an exception in a transaction: throws a conflict instead if its reads are no longer valid. */
    private static void checkReads(Transaction transaction) {
        try {
            transaction.check();
        } catch (IllegalStateException closed) {
            // The body has ended the transaction, or another thread has closed the database: the first exception
            // counts.
        }
    }

    /**
     * Takes a snapshot of all maps, readable while other threads write.
     *
     * @return the snapshot, to be closed
     */
    public Snapshot snapshot() {
        return snapshotWithin(-1);
    }

    /**
     * Takes a snapshot with a limit on the memory for changes made while it is open. When it would need more, writers
     * continue, and reading it fails with {@link WollemiException.Kind#SNAPSHOT_OUTGROWN}.
     *
     * @param bytes the limit in bytes; negative: none
     * @return the snapshot, to be closed
     */
    public Snapshot snapshotWithin(long bytes) {
        long number = handle.snapshot(handle.number(), bytes);
        return new Snapshot(new Handle(number, "a snapshot of " + handle, handle, true));
    }

    /** Returns the level: which failures acknowledged operations survive.
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
     * Waits until all writes that have returned are durable, including {@link Durability#EVENTUAL} ones. At the levels
     * {@code process} and {@code power} they already are.
     */
    public void sync() {
        handle.sync(handle.number());
    }

    /**
     * Takes a checkpoint of a database of level {@code disk}, so that the log can drop older records. The database
     * takes checkpoints by itself as its log grows.
     *
     * @param full whether to cover all entries; if not, only the changes since the last checkpoint, if these are fewer
     * @return the number of its entries; -1 at other levels, where it has no effect
     */
    public long checkpoint(boolean full) {
        return handle.checkpoint(handle.number(), full);
    }

    /**
     * Sets the default durability of writes, in a database of level {@code disk}.
     *
     * @param durability the durability
     */
    public void setDurability(Durability durability) {
        handle.setDurability(handle.number(), durability.text());
    }

    /**
     * Sets the time within which {@link Durability#EVENTUAL} writes become durable, from now on.
     *
     * @param time the time; null: left to the operating system
     */
    public void setSyncWithin(Duration time) {
        handle.setSyncWithin(handle.number(), time == null ? -1 : time.toMillis());
    }

    /**
     * Returns statistics that need no walk of the maps.
     *
     * @return the statistics
     */
    public Stats stats() {
        return Stats.of(handle.stats(handle.number()));
    }

    /**
     * Walks the whole pool and reports inconsistencies. Waits for recovery first. No thread may write meanwhile, or the
     * report may contain false faults.
     *
     * @return the report
     */
    public Check check() {
        return Check.of(handle.check(handle.number()));
    }

    /**
     * Waits until the search for unused space that follows every opening has ended.
     *
     * @return its outcome: {@code done}, {@code idle} if it was never started, or {@code failed: …}
     */
    public String waitRecovered() {
        return Packed.text(handle.waitRecovered(handle.number()));
    }

    /**
     * Returns the file's free pages to its file system.
     *
     * @return their number of bytes
     */
    public long giveBack() {
        return handle.giveBack(handle.number());
    }

    /**
     * Closes the database and all of its objects: maps, transactions, snapshots. Waits for other threads' calls in
     * progress. When it returns, the pool is on the medium, and another process may open it.
     *
     * @throws WollemiException if the medium fails: the database is closed, but it is unknown which writes reached the
     *     medium, and the pool counts as one whose process was killed
     */
    @Override
    public void close() {
        handle.close();
    }

    /**
     * Makes {@link #close} write nothing of the pool to its medium, for a program that removes the pool next. The pool
     * counts as one whose process was killed. Until it is closed, the database continues as before.
     */
    public void abandon() {
        handle.abandon(handle.number());
    }

    @Override
    public String toString() {
        return handle.toString();
    }
}

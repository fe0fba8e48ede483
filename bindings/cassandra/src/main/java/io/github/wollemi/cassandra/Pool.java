package io.github.wollemi.cassandra;

import io.github.wollemi.Database;
import io.github.wollemi.DurableMap;
import io.github.wollemi.Level;
import io.github.wollemi.Options;
import io.github.wollemi.Stats;
import io.github.wollemi.WollemiException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.schema.TableMetadataRef;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A pool of a memtable: rows and their metadata.
 *
 * <p>The map {@code rows} holds the partitions ({@link Keys}, {@link Codec}). The map {@code about} holds the pool's
 * format, the headers of its values ({@link Schema}), its {@link Minima}, and the time at which the memtable was
 * switched out.
 */
final class Pool implements AutoCloseable {
    private static final Logger LOGGER = LoggerFactory.getLogger(Pool.class);
    private static final byte[] FORMAT = "format".getBytes();
    private static final byte[] MINIMA = "minima".getBytes();
    private static final byte[] SWITCHED_OUT = "switched out".getBytes();
    /** The version of the layout of keys and values, and that of Cassandra's serializers. */
    private static final String THIS_FORMAT = "1 " + Codec.SERIALIZERS;

    private static final Set<Pool> OPEN = ConcurrentHashMap.newKeySet();

    private final Path path;
    private final Database database;
    private final DurableMap rows;
    private final DurableMap meta;
    private final Schema schema;
    private final Stripes stripes = new Stripes();
    private volatile Minima minima;
    /** Whether it is closed, or is being closed. */
    private volatile boolean closed;

    private Pool(Path path, Database database, TableMetadataRef metadata) {
        this.path = path;
        this.database = database;
        this.rows = database.map("rows");
        this.meta = database.map("about");
        byte[] format = meta.get(FORMAT);
        if (format == null && rows.isEmpty()) {
            // It is new, or its creation was interrupted.
            meta.put(FORMAT, THIS_FORMAT.getBytes());
        } else if (format == null || !THIS_FORMAT.equals(new String(format))) {
            throw new MemtableFailure("the memtable pool " + path + " has "
                    + (format == null ? "no format record" : "format " + new String(format))
                    + ", expected " + THIS_FORMAT + ": start the version of Cassandra and Wollemi that wrote it, flush the table, and stop", null);
        }
        this.schema = new Schema(meta, metadata);
        byte[] known = meta.get(MINIMA);
        this.minima = known == null ? Minima.NONE : Minima.of(known);
    }

    /** Opens the pool at a path; creates it if it is missing. */
    static Pool open(Path path, Settings settings, TableMetadataRef metadata) {
        Options options = Options.DEFAULT.level(settings.level()).maxSize(settings.maxSize());
        Database database = Database.open(path, options);
        try {
            Pool pool = new Pool(path, database, metadata);
            OPEN.add(pool);
            return pool;
        } catch (RuntimeException failed) {
            try {
                database.close();
            } catch (WollemiException also) {
                failed.addSuppressed(also);
            }
            throw failed;
        }
    }

    /** Returns a view of all open pools. */
    static Set<Pool> allOpen() {
        return Collections.unmodifiableSet(OPEN);
    }

    /**
     * Returns whether the pool, of level {@code process}, was open when the machine stopped, so that opening it is
     * refused. False if that cannot be determined.
     */
    static boolean wasOpenAtMachineCrash(Path path) {
        Options look = Options.DEFAULT.create(false).readOnly(true).afterPowerLoss(io.github.wollemi.AfterPowerLoss.LOOK);
        try (Database database = Database.open(path, look)) {
            return database.stats().lastShutdown().equals("machine crash")
                    && database.level() == Level.PROCESS;
        } catch (WollemiException unreadable) {
            return false;
        }
    }

    Path path() {
        return path;
    }

    Database database() {
        return database;
    }

    DurableMap rows() {
        return rows;
    }

    Schema schema() {
        return schema;
    }

    Stripes.Stripe stripe(byte[] partition) {
        return stripes.of(partition);
    }

    Minima minima() {
        return minima;
    }

    /** Extends the minima and the schema to cover an update, before it is written. */
    Schema.Numbered prepare(PartitionUpdate update) {
        Minima known = minima;
        if (known.and(update) != known) {
            widen(update);
        }
        return schema.covering(update.columns(), update.stats());
    }

    private synchronized void widen(PartitionUpdate update) {
        Minima wider = minima.and(update);
        if (wider != minima) {
            meta.put(MINIMA, wider.bytes());
            minima = wider;
        }
    }

    /** Returns whether it has no rows; true if it is closed. */
    boolean isEmpty() {
        return unlessClosed(rows::isEmpty, true);
    }

    /**
     * Returns whether the pool may hold rows or deletions of a partition. A closed pool answers true: its content is in
     * SSTables that the caller, a compaction, may not know yet.
     */
    boolean mayHold(byte[] partition) {
        return unlessClosed(() -> Reader.holds(this, partition), true);
    }

    /**
     * Returns the result of a call, or a substitute if the pool is closed. Cassandra discards a memtable when the reads
     * of it have ended, but compactions and metrics may still hold it.
     */
    <T> T unlessClosed(Supplier<T> call, T substitute) {
        try {
            return call.get();
        } catch (IllegalStateException failed) {
            if (!closed) {
                throw failed;
            }
            return substitute;
        }
    }

    /**
     * Returns the bytes in use. Soon after the opening of an existing pool it includes free space in pages that the
     * library has not looked at yet.
     */
    long size() {
        Stats stats = database.stats();
        return stats.used() + stats.unswept();
    }

    /** Returns the milliseconds that the library took to open it. */
    long openedInMillis() {
        return database.stats().openedIn().toMillis();
    }

    /** Returns when the memtable was switched out, in milliseconds since 1970; {@link Long#MAX_VALUE} if it was not. */
    long switchedOut() {
        byte[] at = meta.get(SWITCHED_OUT);
        return at == null ? Long.MAX_VALUE : ByteBuffer.wrap(at).getLong();
    }

    void setSwitchedOut(long millis) {
        meta.put(SWITCHED_OUT, ByteBuffer.allocate(Long.BYTES).putLong(millis).array());
    }

    /** Removes the mark of a switch-out: an adopted pool is written to again. */
    void clearSwitchedOut() {
        meta.remove(SWITCHED_OUT);
    }

    @Override
    public synchronized void close() {
        closed = true;
        try {
            database.close();
        } finally {
            OPEN.remove(this);
        }
    }

    /**
     * Closes the pool without writing it back, because its file is removed next. A failure to close is therefore only
     * logged.
     */
    synchronized void abandon() {
        if (!closed) {
            database.abandon();
            try {
                close();
            } catch (WollemiException failed) {
                LOGGER.info("the memtable pool {}, which is about to be removed, could not be closed cleanly", this, failed);
            }
        }
    }

    @Override
    public String toString() {
        return path.toString();
    }
}

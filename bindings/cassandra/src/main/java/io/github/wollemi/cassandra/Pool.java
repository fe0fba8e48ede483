package io.github.wollemi.cassandra;

import io.github.wollemi.Database;
import io.github.wollemi.DurableMap;
import io.github.wollemi.Level;
import io.github.wollemi.Options;
import io.github.wollemi.WollemiException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.schema.TableMetadataRef;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One generation of a memtable: a pool with the rows, and its metadata.
 *
 * <p>The map {@code rows} has the partitions ({@link Keys}, {@link Codec}). The map {@code about} has the pool's
 * format, the headers of its values ({@link Schema}), its {@link Minima}, and the time at which the memtable was
 * switched out.
 */
final class Pool implements AutoCloseable {
    private static final Logger LOGGER = LoggerFactory.getLogger(Pool.class);
    private static final byte[] FORMAT = "format".getBytes();
    private static final byte[] MINIMA = "minima".getBytes();
    private static final byte[] SWITCHED_OUT = "switched out".getBytes();
    /** The form of keys and values, and the version of Cassandra's serializers. */
    private static final String THIS_FORMAT = "1 " + Codec.SERIALIZERS;

    private static final Set<Pool> OPEN = ConcurrentHashMap.newKeySet();

    private final Path path;
    private final Database database;
    private final DurableMap rows;
    private final DurableMap about;
    private final Schema schema;
    private final Stripes stripes = new Stripes();
    private volatile Minima minima;
    /** Whether it is closed, or is being closed. */
    private volatile boolean closed;

    private Pool(Path path, Database database, TableMetadataRef metadata) {
        this.path = path;
        this.database = database;
        this.rows = database.map("rows");
        this.about = database.map("about");
        byte[] format = about.get(FORMAT);
        if (format == null && rows.isEmpty()) {
            // It is new, or its creation was interrupted.
            about.put(FORMAT, THIS_FORMAT.getBytes());
        } else if (format == null || !THIS_FORMAT.equals(new String(format))) {
            throw new MemtableFailure("the memtable pool " + path + " has format "
                    + (format == null ? "?" : new String(format)) + ", expected " + THIS_FORMAT
                    + ": start the version of Cassandra and Wollemi that has written it, flush the table, and stop", null);
        }
        this.schema = new Schema(about, metadata);
        byte[] known = about.get(MINIMA);
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

    /** Returns all pools that are open. */
    static Set<Pool> allOpen() {
        return OPEN;
    }

    /** Returns whether a pool that cannot be opened was open, at level {@code process}, when the machine stopped. */
    static boolean isLostWithPower(Path path) {
        Options look = Options.DEFAULT.create(false).readOnly(true).afterPowerLoss(io.github.wollemi.AfterPowerLoss.LOOK);
        try (Database database = Database.open(path, look)) {
            return database.stats().lastShutdown().equals("machine crash")
                    && database.level() == Level.PROCESS;
        } catch (WollemiException other) {
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
        if (minima.and(update) != minima) {
            widen(update);
        }
        return schema.covering(update.columns(), update.stats());
    }

    private synchronized void widen(PartitionUpdate update) {
        Minima wider = minima.and(update);
        if (wider != minima) {
            about.put(MINIMA, wider.bytes());
            minima = wider;
        }
    }

    /** Returns whether it has no rows; true if it is closed. */
    boolean isEmpty() {
        return unlessClosed(rows::isEmpty, true);
    }

    /**
     * Returns whether it has anything of a partition; true if it is closed. Then SSTables may have the partition, and
     * the caller may know only SSTables that are older.
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

    /** Returns the bytes in use. */
    long size() {
        return database.stats().used();
    }

    /** Returns when the memtable was switched out, in milliseconds since 1970; {@link Long#MAX_VALUE} if it was not. */
    long switchedOut() {
        byte[] at = about.get(SWITCHED_OUT);
        return at == null ? Long.MAX_VALUE : ByteBuffer.wrap(at).getLong();
    }

    void setSwitchedOut(long millis) {
        about.put(SWITCHED_OUT, ByteBuffer.allocate(Long.BYTES).putLong(millis).array());
    }

    /** Accepts writes again. */
    void reopen() {
        about.remove(SWITCHED_OUT);
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

    /** Closes it without writing it to its medium: it is removed next, so a failure of its log does not matter. */
    synchronized void abandon() {
        if (!closed) {
            database.abandon();
            try {
                close();
            } catch (WollemiException failed) {
                LOGGER.info("the memtable pool {}, which is about to be removed, could not be closed in order", this, failed);
            }
        }
    }

    @Override
    public String toString() {
        return path.toString();
    }
}

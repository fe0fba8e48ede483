package io.github.wollemi.cassandra;

import io.github.wollemi.Level;
import io.github.wollemi.WollemiException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.notifications.TruncationNotification;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.service.StorageService;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The pools of one table, in a separate folder.
 *
 * <p>A pool is {@code NUMBER.pool}; the library's files beside it begin with that name. Numbers rise, and a process
 * does not reuse them. The file {@code NUMBER.dead} marks a pool whose whole content is in SSTables, or was truncated
 * or dropped: it is durable before any of the pool's files is removed, and is removed last.
 */
final class Pools {
    private static final Logger LOGGER = LoggerFactory.getLogger(Pools.class);
    private static final Pattern NAME = Pattern.compile("(\\d+)\\.(pool|dead)(\\..*)?");
    /** The end of the name of a pool that was set aside for the operator. */
    private static final String LOST = ".lost";
    /** By folder, so that a process does not mistake its own pools for those of an earlier one. */
    private static final Map<Path, Pools> ALL = new ConcurrentHashMap<>();

    /** By table, the latest truncation that is known, in milliseconds since 1970. A table's indexes have its id. */
    private static final Map<TableId, AtomicLong> TRUNCATIONS = new ConcurrentHashMap<>();
    private static final AtomicBoolean CLOSES_AFTER_DRAIN = new AtomicBoolean();

    private final Path folder;
    private final AtomicBoolean hearsOfTruncations = new AtomicBoolean();
    /** The table's entry of {@link #TRUNCATIONS}. */
    private final AtomicLong truncatedAt;
    private boolean searched;
    private long last;

    private Pools(Path folder, TableId table) {
        this.folder = folder;
        this.truncatedAt = TRUNCATIONS.computeIfAbsent(table, id -> new AtomicLong());
    }

    static Pools of(Settings settings, TableMetadataRef metadata) {
        TableId id = metadata.get().id;
        // A table and its indexes have the same id.
        String table = metadata.name + "-" + id.toHexString();
        return ALL.computeIfAbsent(settings.directory().resolve(metadata.keyspace).resolve(table),
                folder -> new Pools(folder, id));
    }

    /**
     * Has the node close, at the end of its drain, the pools that are then open. A drain flushes no memtable without
     * rows, and its pool would otherwise count as lost if the machine is restarted next.
     */
    static void closeAfterDrain() {
        // Cassandra's offline tools read configurations too.
        if (DatabaseDescriptor.isDaemonInitialized() && CLOSES_AFTER_DRAIN.compareAndSet(false, true)) {
            StorageService.instance.addPostShutdownHook(Pools::closeAll);
        }
    }

    /** Closes all pools except those that are about to be removed. */
    private static void closeAll() {
        for (Pool pool : Pool.allOpen()) {
            if (Files.notExists(dead(pool.path()))) {
                try {
                    pool.close();
                } catch (WollemiException failed) {
                    LOGGER.warn("the memtable pool {} could not be closed cleanly", pool, failed);
                }
            }
        }
    }

    /** Creates a pool. */
    synchronized Pool create(Settings settings, TableMetadataRef metadata) {
        Path path = path(++last, "pool");
        try {
            createFolders(folder);
            return Pool.open(path, settings, metadata);
        } catch (IOException failed) {
            throw new MemtableFailure("the folder of the memtable pools of " + metadata + " cannot be created: " + failed,
                    failed);
        } catch (WollemiException failed) {
            throw new MemtableFailure("the memtable pool " + path + " cannot be created: " + failed.getMessage(), failed);
        }
    }

    /**
     * Creates a folder and its parents durably, since a pool is lost with the name of its folder. Several tables may
     * need the same parent, and none of them may use it before its name is durable.
     */
    private static void createFolders(Path folder) throws IOException {
        synchronized (ALL) {
            Path existing = folder;
            while (Files.notExists(existing)) {
                existing = existing.getParent();
            }
            Files.createDirectories(folder);
            for (Path path = folder; !path.equals(existing); path = path.getParent()) {
                sync(path.getParent());
            }
        }
    }

    private static void sync(Path directory) throws IOException {
        try (FileChannel open = FileChannel.open(directory, StandardOpenOption.READ)) {
            open.force(true);
        }
    }

    /**
     * Opens the pools that an earlier process has left, the oldest first; later calls find none.
     *
     * @param truncation returns the time of the table's last truncation, in milliseconds since 1970. Only the first call
     * calls it, whether there are such pools or not, since pools made later are switched out after that time. It waits
     * for a lock that Cassandra holds while a truncation waits for writes
     */
    synchronized List<Pool> adopt(Settings settings, TableMetadataRef metadata, LongSupplier truncation) {
        if (searched) {
            return List.of();
        }
        searched = true;
        // All that are open, also those that are about to be removed.
        List<Pool> opened = new ArrayList<>();
        try {
            truncated(truncation.getAsLong());
            for (long number : left()) {
                Pool pool = open(number, settings, metadata);
                if (pool != null) {
                    opened.add(pool);
                }
            }
            return withoutTruncated(opened, metadata);
        } catch (RuntimeException failed) {
            opened.forEach(pool -> close(pool, failed));
            // A later attempt finds them again.
            searched = false;
            throw failed;
        }
    }

    /** Removes the pools that were switched out before the table's last truncation. Returns the others. */
    private List<Pool> withoutTruncated(List<Pool> opened, TableMetadataRef metadata) {
        List<Pool> adopted = new ArrayList<>();
        for (Pool pool : opened) {
            if (pool.switchedOut() <= truncatedAt.get()) {
                retire(pool.path());
                pool.abandon();
                remove(pool.path());
            } else {
                LOGGER.info("{}: adopted the memtable pool {} of {} bytes, opened in {} ms", metadata, pool, pool.size(),
                        pool.openedInMillis());
                adopted.add(pool);
            }
        }
        return adopted;
    }

    /** Closes a pool because of a failure, to which a failure to close it is added. */
    private static void close(Pool pool, RuntimeException failed) {
        try {
            pool.close();
        } catch (RuntimeException also) {
            failed.addSuppressed(also);
        }
    }

    /**
     * Closes pools that were adopted, after an exception that keeps the memtable from using them. The table's next
     * memtable adopts them.
     */
    synchronized void giveBack(List<Pool> adopted, RuntimeException failed) {
        searched = false;
        adopted.forEach(pool -> close(pool, failed));
    }

    /**
     * Returns the time at which a memtable is switched out, in milliseconds since 1970. It is after each truncation
     * that is known, even if the clock was set back since: otherwise the pool would be removed at the next start.
     *
     * @param owner the memtable's owner
     */
    long switchOut(Memtable.Owner owner) {
        // A truncation switches out the memtables of the table and its indexes first, then tells the table its time.
        if (owner instanceof ColumnFamilyStore table && !hearsOfTruncations.getAndSet(true)) {
            table.getTracker().subscribe((notification, sender) -> {
                if (notification instanceof TruncationNotification truncation) {
                    truncated(truncation.truncatedAt);
                }
            });
        }
        return Math.max(System.currentTimeMillis(), truncatedAt.get() + 1);
    }

    private void truncated(long at) {
        truncatedAt.accumulateAndGet(at, Math::max);
    }

    /** Opens a pool of an earlier process; returns null if it is to be removed or set aside. */
    private Pool open(long number, Settings settings, TableMetadataRef metadata) {
        Path path = path(number, "pool");
        if (Files.exists(path(number, "dead"))) {
            remove(path);
            return null;
        }
        try {
            return Pool.open(path, settings, metadata);
        } catch (WollemiException | IllegalStateException failed) {
            if (settings.level() == Level.PROCESS && Pool.wasOpenAtMachineCrash(path)) {
                return lostWithPower(path, settings, metadata, failed);
            }
            throw new MemtableFailure("the memtable pool " + path + " of " + metadata + " cannot be adopted: "
                    + failed.getMessage(), failed);
        }
    }

    /**
     * Sets the pool aside if the table has a commit log, since the log has all writes. Without one, throws: the writes
     * since the last flush are lost, and the node must not start.
     */
    private Pool lostWithPower(Path path, Settings settings, TableMetadataRef metadata, RuntimeException failed) {
        if (settings.durable()) {
            throw new MemtableFailure("the memtable pool " + path + " of " + metadata + " was open when the machine stopped, "
                    + "at level 'process', and there is no commit log of it: writes since the last flush are lost. "
                    + "Move the pool away, start the node, and repair the table", failed);
        }
        Path aside = path.resolveSibling(path.getFileName() + LOST);
        LOGGER.warn("{}: the memtable pool {} was open when the machine stopped. It becomes {}; the commit log is replayed",
                metadata, path, aside);
        try {
            Files.move(path, aside, StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException cannot) {
            throw new UncheckedIOException(cannot);
        }
        return null;
    }

    /**
     * Returns the numbers of all pools that exist, complete or not. Numbers of pools that were set aside are not
     * reused.
     */
    private List<Long> left() {
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        SortedMap<Long, Boolean> numbers = new TreeMap<>();
        try (Stream<Path> files = Files.list(folder)) {
            files.forEach(file -> {
                Matcher name = NAME.matcher(file.getFileName().toString());
                if (name.matches()) {
                    long number = Long.parseLong(name.group(1));
                    last = Math.max(last, number);
                    if (!file.toString().endsWith(LOST)) {
                        numbers.put(number, true);
                    }
                }
            });
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
        return List.copyOf(numbers.keySet());
    }

    /** Records durably that a pool must not be adopted any more. */
    void retire(Path pool) {
        try {
            Files.write(dead(pool), new byte[0]);
            sync(folder);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    /** Removes a pool that is closed and retired. */
    void remove(Path pool) {
        String name = pool.getFileName().toString();
        try {
            List<Path> files;
            try (Stream<Path> all = Files.list(folder)) {
                files = all.filter(file -> file.getFileName().toString().startsWith(name))
                        .filter(file -> !file.toString().endsWith(LOST)).toList();
            }
            for (Path file : files) {
                delete(file);
            }
            Files.deleteIfExists(dead(pool));
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    private static void delete(Path tree) throws IOException {
        Files.walkFileTree(tree, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.deleteIfExists(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path directory, IOException failed) throws IOException {
                Files.deleteIfExists(directory);
                return FileVisitResult.CONTINUE;
            }
        });
    }

    private Path path(long number, String kind) {
        return folder.resolve(number + "." + kind);
    }

    private static Path dead(Path pool) {
        String name = pool.getFileName().toString();
        return pool.resolveSibling(name.substring(0, name.length() - "pool".length()) + "dead");
    }
}

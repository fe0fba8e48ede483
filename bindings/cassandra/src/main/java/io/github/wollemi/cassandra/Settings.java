package io.github.wollemi.cassandra;

import io.github.wollemi.Level;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.cassandra.config.DataStorageSpec;
import org.apache.cassandra.exceptions.ConfigurationException;

/**
 * The parameters of a memtable configuration in {@code cassandra.yaml}.
 *
 * @param directory the folder of the pools
 * @param level the pools' durability level
 * @param commitLog whether writes also go to the commit log
 * @param flushSize the size of a pool, in bytes, at which the memtable is flushed
 */
record Settings(Path directory, Level level, CommitLogUse commitLog, long flushSize) {
    static final String DIRECTORY = "directory";
    static final String LEVEL = "level";
    static final String COMMIT_LOG = "commit_log";
    static final String FLUSH_SIZE = "flush_size";

    private static final String DEFAULT_FLUSH_SIZE = "1GiB";
    private static final long LEAST_FLUSH_SIZE = 1 << 20;
    /**
     * Writes continue while a flush lags behind: a pool may grow to this many times its flush size, and to 1 GiB at
     * least.
     */
    private static final long ROOM = 4;
    private static final long LEAST_MAX_SIZE = 1L << 30;

    /** Whether writes also go to Cassandra's commit log. */
    enum CommitLogUse {
        /** They do. */
        KEEP,
        /** They do not: only the pool has them. */
        SKIP
    }

    /** Returns the settings, and removes their parameters from the map, since Cassandra refuses those left in it. */
    static Settings take(Map<String, String> parameters) {
        String directory = parameters.remove(DIRECTORY);
        if (directory == null || directory.isBlank()) {
            throw new ConfigurationException("a wollemi memtable has no parameter '" + DIRECTORY
                    + "': name a folder for its pools");
        }
        try {
            return new Settings(
                    Path.of(directory).toAbsolutePath().normalize(),
                    constant(LEVEL, parameters.remove(LEVEL), Level.PROCESS),
                    constant(COMMIT_LOG, parameters.remove(COMMIT_LOG), CommitLogUse.KEEP),
                    size(parameters.remove(FLUSH_SIZE)));
        } catch (InvalidPathException invalid) {
            throw new ConfigurationException("'" + DIRECTORY + "' is not a path: " + invalid.getMessage());
        }
    }

    private static <E extends Enum<E>> E constant(String parameter, String given, E otherwise) {
        if (given == null) {
            return otherwise;
        }
        List<E> all = Arrays.asList(otherwise.getDeclaringClass().getEnumConstants());
        for (E one : all) {
            if (name(one).equals(given)) {
                return one;
            }
        }
        String names = all.stream().map(Settings::name).collect(Collectors.joining(", "));
        throw new ConfigurationException("'" + parameter + "' is '" + given + "': it must be one of " + names);
    }

    private static String name(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT);
    }

    private static long size(String given) {
        String text = given == null ? DEFAULT_FLUSH_SIZE : given;
        long bytes;
        try {
            bytes = new DataStorageSpec.LongBytesBound(text).toBytes();
        } catch (IllegalArgumentException invalid) {
            throw new ConfigurationException("'" + FLUSH_SIZE + "' is '" + text + "': write it as 512MiB or 2GiB");
        }
        if (bytes < LEAST_FLUSH_SIZE) {
            throw new ConfigurationException("'" + FLUSH_SIZE + "' is '" + text + "': it must be at least 1MiB");
        }
        return bytes;
    }

    /** Returns whether the pools alone preserve acknowledged writes, so that the commit log need not be replayed. */
    boolean durable() {
        return commitLog == CommitLogUse.SKIP || level != Level.PROCESS;
    }

    /** Returns the maximum size of a pool. Beyond it, writes fail until the memtable is flushed. */
    long maxSize() {
        return Math.max(LEAST_MAX_SIZE, flushSize > Long.MAX_VALUE / ROOM ? flushSize : ROOM * flushSize);
    }
}

package io.github.wollemi;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Options for opening a database. Each method returns a changed copy.
 *
 * <pre>{@code
 * var options = Options.DEFAULT.level(Level.DISK).maxSize(8L << 30);
 * try (var db = Database.open(Path.of("shop.pool"), options)) { … }
 * }</pre>
 */
public final class Options {
    /** Level {@code process}, the index ROART, one recovery thread, and creation of a missing pool. */
    public static final Options DEFAULT = new Options(Map.of());

    private final Map<String, String> set;

    private Options(Map<String, String> set) {
        this.set = set;
    }

    /**
     * Sets the minimum level. Opening fails if the file does not support it. A pool that has a log keeps it, whatever
     * this says; a pool without one gets it at level {@code disk}.
     *
     * @param level the level
     * @return options with it
     */
    public Options level(Level level) {
        return with("level", name(level));
    }

    /**
     * Sets the index for new maps, one of {@link Database#indexes}. An existing map keeps its own. Default: {@code
     * roart}.
     *
     * @param index its name
     * @return options with it
     */
    public Options index(String index) {
        return with("index", index);
    }

    /**
     * Sets the maximum size of the pool. This much address space is reserved; blocks are allocated only when needed.
     * Default: 1 TiB, or what the system allows.
     *
     * @param bytes the size in bytes
     * @return options with it
     */
    public Options maxSize(long bytes) {
        return with("maxSize", natural(bytes));
    }

    /**
     * Sets the heap's page size, for pools that are created. Default: 256 KiB.
     *
     * @param bytes a power of two from 64 KiB to 128 MiB
     * @return options with it
     */
    public Options pageSize(long bytes) {
        return with("pageSize", natural(bytes));
    }

    /**
     * Sets the number of background threads that look for unused space after the opening. Default: 1.
     *
     * @param threads their number; with none, space used before the opening is not reused
     * @return options with it
     */
    public Options recoveryThreads(int threads) {
        return with("recoveryThreads", natural(threads));
    }

    /**
     * Sets whether to create the pool if its file is missing. Default: yes.
     *
     * @param create whether to create it
     * @return options with it
     */
    public Options create(boolean create) {
        return with("create", Boolean.toString(create));
    }

    /**
     * Opens the pool read-only: no byte of its file changes, and other processes may read it at the same time. Default:
     * no.
     *
     * @param readOnly whether to open it read-only
     * @return options with it
     */
    public Options readOnly(boolean readOnly) {
        return with("readOnly", Boolean.toString(readOnly));
    }

    /**
     * Sets the default durability of writes, at level {@code disk}. Default: {@link Durability#IMMEDIATE}.
     *
     * @param durability the durability
     * @return options with it
     */
    public Options durability(Durability durability) {
        return with("durability", name(durability));
    }

    /**
     * Sets the time within which {@link Durability#EVENTUAL} writes become durable, at level {@code disk}. Default: 1
     * s.
     *
     * @param time the time
     * @return options with it
     */
    public Options syncWithin(Duration time) {
        return with("syncWithinMillis", natural(time.toMillis()));
    }

    /**
     * Sets the maximum length of the log of a database of level {@code disk}. Checkpoints keep it shorter. Default: 256
     * MiB.
     *
     * @param bytes the length in bytes, at least 64 MiB
     * @return options with it
     */
    public Options logLimit(long bytes) {
        return with("logLimit", natural(bytes));
    }

    /**
     * Sets how long an opening waits for other processes that have the pool open. Default: two seconds.
     *
     * @param time the time
     * @return options with it
     */
    public Options lockWait(Duration time) {
        return with("lockWaitMillis", natural(time.toMillis()));
    }

    /**
     * Sets what to do with a pool of level {@code process} that was open when the machine crashed. Default: refuse to
     * open it.
     *
     * @param what the choice
     * @return options with it
     */
    public Options afterPowerLoss(AfterPowerLoss what) {
        return with("afterPowerLoss", name(what));
    }

    private Options with(String name, String value) {
        var other = new LinkedHashMap<>(set);
        other.put(name, value);
        return new Options(other);
    }

    private static String natural(long number) {
        if (number < 0) {
            throw new IllegalArgumentException("a negative number: " + number);
        }
        return Long.toString(number);
    }

    /** Returns the native library's name of a constant. */
    static String name(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT);
    }

    byte[] packed() {
        List<byte[]> pairs = new ArrayList<>();
        set.forEach((name, value) -> {
            pairs.add(Packed.utf8(name));
            pairs.add(Packed.utf8(value));
        });
        return Packed.pack(pairs);
    }

    @Override
    public String toString() {
        return "Options" + set;
    }
}

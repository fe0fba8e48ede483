package io.github.wollemi;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * How a database is opened. Each method returns other options; these stay as they are.
 *
 * <pre>{@code
 * var options = Options.DEFAULT.level(Level.DISK).maxSize(8L << 30);
 * try (var db = Database.open(Path.of("shop.pool"), options)) { … }
 * }</pre>
 */
public final class Options {
    /** Level {@code process}, the index ROART, one recovery thread, a pool that is created if it is not there. */
    public static final Options DEFAULT = new Options(Map.of());

    private final Map<String, String> set;

    private Options(Map<String, String> set) {
        this.set = set;
    }

    /**
     * The least level wanted. Opening fails where the file cannot give it. A pool that has a log keeps it, whatever is
     * asked for; one that has none is given one at level {@code disk}.
     *
     * @param level the level
     * @return options with it
     */
    public Options level(Level level) {
        return with("level", name(level));
    }

    /**
     * The index that holds the maps to be made, one of {@link Database#indexes}. A map that is there is opened as what it
     * is. Default: {@code roart}.
     *
     * @param index its name
     * @return options with it
     */
    public Options index(String index) {
        return with("index", index);
    }

    /**
     * The size up to which the pool may grow. This much address space is reserved; blocks are taken only as they are
     * needed. Default: 1 TiB, or what the system allows.
     *
     * @param bytes the size in bytes
     * @return options with it
     */
    public Options maxSize(long bytes) {
        return with("maxSize", natural(bytes));
    }

    /**
     * The heap's page, for pools that are created. Default: 256 KiB.
     *
     * @param bytes a power of two from 64 KiB to 128 MiB
     * @return options with it
     */
    public Options pageSize(long bytes) {
        return with("pageSize", natural(bytes));
    }

    /**
     * How many background threads look for unused space after the opening. Default: 1.
     *
     * @param threads their number; with none, space from before the opening is not reused
     * @return options with it
     */
    public Options recoveryThreads(int threads) {
        return with("recoveryThreads", natural(threads));
    }

    /**
     * Whether to create the pool if there is no such file. Default: yes.
     *
     * @param create whether to
     * @return options with it
     */
    public Options create(boolean create) {
        return with("create", Boolean.toString(create));
    }

    /**
     * Opens the pool to be read: no byte of its file changes, and others may read it at the same time. Default: no.
     *
     * @param readOnly whether to
     * @return options with it
     */
    public Options readOnly(boolean readOnly) {
        return with("readOnly", Boolean.toString(readOnly));
    }

    /**
     * When writes are durable that say nothing else, at level {@code disk}. Default: {@link Durability#IMMEDIATE}.
     *
     * @param durability when
     * @return options with it
     */
    public Options durability(Durability durability) {
        return with("durability", name(durability));
    }

    /**
     * Within which time {@link Durability#EVENTUAL} writes are durable, at level {@code disk}. Default: one second.
     *
     * @param time the time
     * @return options with it
     */
    public Options syncWithin(Duration time) {
        return with("syncWithinMillis", natural(time.toMillis()));
    }

    /**
     * How long the log of a database of level {@code disk} may be. Checkpoints keep it shorter. Default: 256 MiB.
     *
     * @param bytes the length in bytes, at least 64 MiB
     * @return options with it
     */
    public Options logLimit(long bytes) {
        return with("logLimit", natural(bytes));
    }

    /**
     * How long an opening waits for other processes that have the pool open. Default: two seconds.
     *
     * @param time the time
     * @return options with it
     */
    public Options lockWait(Duration time) {
        return with("lockWaitMillis", natural(time.toMillis()));
    }

    /**
     * What to do with a pool of level {@code process} that was open when the machine crashed. Default: refuse to open it.
     *
     * @param what what to do
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

    /** The name of a constant on the other side. */
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

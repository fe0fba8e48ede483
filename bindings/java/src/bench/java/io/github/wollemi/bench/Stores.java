package io.github.wollemi.bench;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** Microseconds per call in one thread, with keys of eight random bytes. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 2, time = 1)
@Measurement(iterations = 3, time = 1)
@Fork(3)
public class Stores {
    /** The store under test. */
    @Param({"wollemi", "rocksdb", "lmdb", "mapdb"})
    public String store;

    /** Number of keys. */
    @Param("200000")
    public int keys;

    /** Length of their values, in bytes. */
    @Param("100")
    public int value;

    private Path folder;
    private Store open;
    private byte[] bytes;

    /** Fills a store, in the system's folder for temporary files. */
    @Setup(Level.Trial)
    public void fill() throws Exception {
        folder = Files.createTempDirectory("wollemi-bench");
        open = Store.open(store, folder);
        bytes = new byte[value];
        for (int i = 0; i < keys; i++) {
            open.put(key(i), bytes);
        }
    }

    /** Closes the store and removes it. */
    @TearDown(Level.Trial)
    public void remove() throws Exception {
        open.close();
        try (var files = Files.walk(folder)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        } catch (IOException gone) {
            throw new IllegalStateException(gone);
        }
    }

    /** Scatters numbers over the key space. */
    private static byte[] key(long number) {
        long mixed = (number + 1) * 0x9e3779b97f4a7c15L;
        return ByteBuffer.allocate(8).putLong(mixed ^ mixed >>> 29).array();
    }

    private byte[] some() {
        return key(ThreadLocalRandom.current().nextInt(keys));
    }

    /** Reads a present key. */
    @Benchmark
    public byte[] get() throws Exception {
        return open.get(some());
    }

    /** Replaces the value of a present key. */
    @Benchmark
    public void put() throws Exception {
        open.put(some(), bytes);
    }

    /** Reads a hundred entries from a key on. */
    @Benchmark
    public long scan100() throws Exception {
        return open.scan(some(), 100);
    }
}

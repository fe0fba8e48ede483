package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.cassandra.notifications.MemtableDiscardedNotification;
import org.apache.cassandra.schema.TableMetadataRef;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The pools of a memtable after exceptions, without a node. */
class MemtablePoolsTest {
    private final TableMetadataRef metadata = Offline.table();

    @TempDir
    Path directory;

    @BeforeAll
    static void configure() {
        Offline.configure();
    }

    private Settings settings() {
        return Offline.settings(directory);
    }

    /** Returns the paths of two pools as an earlier process leaves them. */
    private List<Path> leftPools() throws IOException {
        Path folder = directory.resolve("ks").resolve("t-" + metadata.get().id.toHexString());
        Files.createDirectories(folder);
        List<Path> paths = List.of(folder.resolve("1.pool"), folder.resolve("2.pool"));
        for (Path path : paths) {
            try (Pool pool = Pool.open(path, settings(), metadata)) {
                pool.setSwitchedOut(Long.MAX_VALUE - 1);
            }
        }
        return paths;
    }

    private MemtablePools adopt(Consumer<Pool> adopted) {
        return new MemtablePools(settings(), metadata, () -> 0, adopted);
    }

    private static List<Path> paths(MemtablePools pools) {
        return pools.all().stream().map(Pool::path).toList();
    }

    private boolean anyOpen() {
        return Pool.allOpen().stream().anyMatch(pool -> pool.path().startsWith(directory));
    }

    @Test
    void poolsThatTheMemtableCouldNotUseAreAdoptedByTheNext() throws IOException {
        List<Path> left = leftPools();
        IllegalStateException planned = new IllegalStateException("planned");
        assertSame(planned, assertThrows(IllegalStateException.class, () -> adopt(pool -> {
            throw planned;
        })));
        assertFalse(anyOpen());
        MemtablePools pools = adopt(pool -> {});
        assertEquals(left, paths(pools));
        assertEquals(left.get(1), pools.writable().path());
        assertEquals(Long.MAX_VALUE, pools.writable().switchedOut());
        pools.all().forEach(Pool::close);
    }

    @Test
    void poolsThatCannotBeRetiredAreClosedAndStay() throws IOException {
        List<Path> left = leftPools();
        MemtablePools pools = adopt(pool -> {});
        pools.switchOut(null, null);
        // It keeps the file of this name, which marks the pool as retired, from being created.
        Path obstacle = Files.createDirectory(left.get(0).resolveSibling("1.dead"));
        assertThrows(UncheckedIOException.class, pools::discard);
        assertFalse(anyOpen());
        assertEquals(List.of(true, true), left.stream().map(Files::exists).toList());
        Files.delete(obstacle);
        pools.discard();
        try (Stream<Path> files = Files.list(left.get(0).getParent())) {
            assertEquals(List.of(), files.toList());
        }
    }

    /** Otherwise the next start would take the pool for one that was switched out before the truncation. */
    @Test
    void aNewPoolIsSwitchedOutAfterATruncationThatAnEarlierProcessHasSeen() {
        long truncation = System.currentTimeMillis() + TimeUnit.HOURS.toMillis(1);
        MemtablePools pools = new MemtablePools(settings(), metadata, () -> truncation, pool -> {});
        pools.writable();
        pools.switchOut(null, null);
        assertTrue(pools.writable().switchedOut() > truncation);
        pools.all().forEach(Pool::close);
    }

    /** An exception would break off the flush, whose SSTables are already part of the table. */
    @Test
    void aPoolThatCannotBeRetiredWhenItsSstablesAreIsRetiredLater() throws IOException {
        Path pool = leftPools().get(0);
        Path mark = pool.resolveSibling("1.dead");
        Pools tablePools = Pools.of(settings(), metadata);
        try (Pool open = Pool.open(pool, settings(), metadata)) {
            Retirement retirement = new Retirement(null, null, tablePools, () -> List.of(open));
            Files.createDirectory(mark);
            retirement.handleNotification(new MemtableDiscardedNotification(null), null);
            Files.delete(mark);
            retirement.retire();
            assertTrue(Files.isRegularFile(mark));
        }
    }

    @Test
    void aPoolThatCannotBeRemovedDoesNotKeepTheOthers() throws IOException {
        List<Path> left = leftPools();
        MemtablePools pools = adopt(pool -> {});
        pools.switchOut(null, null);
        pools.retire();
        // A directory that is not empty takes the place of the first pool's mark, and cannot be removed.
        Path mark = left.get(0).resolveSibling("1.dead");
        Files.delete(mark);
        Files.createDirectories(mark.resolve("obstacle"));
        assertThrows(UncheckedIOException.class, pools::discard);
        assertFalse(anyOpen());
        assertEquals(List.of(false, false), left.stream().map(Files::exists).toList());
    }
}

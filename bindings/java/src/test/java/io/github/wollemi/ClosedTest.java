package io.github.wollemi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** A call on a closed object throws, in any thread. An object that was never closed is reported. */
class ClosedTest {
    @TempDir
    Path folder;

    private static final byte[] KEY = Bytes.of("key");

    /** Calls on a closed database, and on the objects opened from it, throw. */
    @Test
    void callsOnClosedObjectsThrow() {
        Database db = Database.inMemory(Options.DEFAULT);
        DurableMap map = db.map("m");
        map.put(KEY, KEY);
        Snapshot snapshot = db.snapshot();
        ReadableMap then = snapshot.map(map);
        Transaction transaction = db.begin();
        WritableMap seen = transaction.map(map);
        Cursor cursor = map.cursor();
        ExpiringMap expiring = new ExpiringMap(db.map("e"));
        Sweeper sweeper = expiring.sweeper(Duration.ofHours(1));
        Batch batch = db.batch().put(map, KEY, KEY);
        ByteBuffer buffer = ByteBuffer.allocateDirect(8);
        db.close();
        db.close();
        List<Executable> calls = List.of(() -> db.map("m"), db::maps, db::stats, db::check, db::sync, db::snapshot,
                db::begin, db::level, () -> map.get(KEY), () -> map.put(KEY, KEY), () -> map.get(buffer, buffer),
                () -> map.put(buffer, buffer), () -> map.multiGet(List.of(KEY)), map::count, map::firstEntry,
                map.descendingMap()::isEmpty, cursor::next, () -> then.get(KEY), then::firstEntry, snapshot::memory,
                () -> seen.get(KEY), () -> seen.put(KEY, KEY), seen::firstEntry, transaction::commit,
                transaction::check, () -> expiring.get(KEY), sweeper::removed, batch::commit,
                () -> db.transact(tx -> null), () -> map.withDurability(Durability.EVENTUAL));
        for (int i = 0; i < calls.size(); i++) {
            assertThrows(IllegalStateException.class, calls.get(i), "call " + i);
        }
        map.close();
        snapshot.close();
        transaction.close();
        sweeper.close();
    }

    /**
     * Six threads use a database, each in a different way, while another thread closes it. Each of the six gets an
     * exception, and none crashes.
     */
    @Test
    void closeDuringConcurrentCalls() throws Exception {
        Path pool = folder.resolve("closed.pool");
        ExecutorService threads = Executors.newFixedThreadPool(6);
        try {
            for (int round = 0; round < 25; round++) {
                // The pool is closed when close returns, so no wait is needed.
                Database db = Database.open(pool, Options.DEFAULT.lockWait(Duration.ZERO));
                assertEquals(round == 0 ? "new" : "clean", db.stats().lastShutdown());
                DurableMap map = db.map("m");
                CountDownLatch started = new CountDownLatch(6);
                List<Callable<Void>> uses = new ArrayList<>();
                for (int i = 0; i < 6; i++) {
                    int kind = i;
                    uses.add(() -> {
                        assertThrows(IllegalStateException.class, () -> {
                            for (long n = 0;; n++) {
                                use(db, map, kind, n);
                                if (n == 0) {
                                    started.countDown();
                                }
                            }
                        });
                        return null;
                    });
                }
                List<Future<Void>> running = uses.stream().map(threads::submit).toList();
                assertTrue(started.await(60, TimeUnit.SECONDS), "a thread has not made its first call");
                db.close();
                for (Future<Void> use : running) {
                    use.get();
                }
            }
        } finally {
            threads.shutdown();
        }
        try (Database db = Database.open(pool)) {
            Check check = db.check();
            assertTrue(check.isClean(), check.faults().toString());
        }
    }

    /** Two threads close a database: when either of them returns, the pool can be opened. */
    @Test
    void eachOfTwoClosersWaits() throws Exception {
        Path pool = folder.resolve("twice.pool");
        ExecutorService threads = Executors.newFixedThreadPool(2);
        try {
            for (int round = 0; round < 30; round++) {
                Database db = Database.open(pool, Options.DEFAULT.lockWait(Duration.ZERO));
                db.map("m").put(Bytes.of(round), new byte[1 << 20]);
                CyclicBarrier start = new CyclicBarrier(2);
                Callable<Void> closer = () -> {
                    start.await(60, TimeUnit.SECONDS);
                    db.close();
                    synchronized (start) {
                        Database.open(pool, Options.DEFAULT.lockWait(Duration.ZERO)).close();
                    }
                    return null;
                };
                for (Future<Void> closed : threads.invokeAll(List.of(closer, closer))) {
                    closed.get();
                }
            }
        } finally {
            threads.shutdown();
        }
    }

    private static void use(Database db, DurableMap map, int kind, long n) {
        byte[] key = Bytes.of(n % 1000);
        switch (kind) {
            case 0 -> map.put(key, Bytes.of(n));
            case 1 -> map.get(key);
            case 2 -> map.remove(key);
            case 3 -> map.tailMap(key, true).descendingMap().cursor().advance();
            case 4 -> {
                try {
                    db.transact(tx -> {
                        tx.map(map).put(key, Bytes.of(n));
                        return tx.map(map).firstEntry();
                    });
                } catch (ConflictException conflict) {
                    // The other threads write the same keys.
                }
            }
            default -> {
                try (Snapshot snapshot = db.snapshot(); DurableMap other = db.map("other")) {
                    snapshot.map(map).get(key);
                    other.put(key, key);
                }
            }
        }
    }

    /** A database that becomes unreachable while open is closed, and then reported to the listener. */
    @Test
    void leaksAreClosedAndReported() throws Exception {
        Path pool = folder.resolve("leak.pool");
        AtomicReference<Leaks.Leak> reported = new AtomicReference<>();
        CountDownLatch leaked = new CountDownLatch(1);
        Leaks.listen(leak -> {
            if (leak.what().contains("leak.pool")) {
                reported.set(leak);
                leaked.countDown();
            }
        });
        try {
            leak(pool);
            long begin = System.nanoTime();
            while (!leaked.await(10, TimeUnit.MILLISECONDS)) {
                assertTrue(System.nanoTime() - begin < 60_000_000_000L, "the leak was not reported within 60 s");
                System.gc();
            }
            assertEquals("the database " + pool, reported.get().toString());
            assertTrue(List.of(reported.get().opened().getStackTrace()).toString().contains("ClosedTest.leak"));
            // It was closed before the report, so the pool can be opened.
            try (Database db = Database.open(pool, Options.DEFAULT.lockWait(Duration.ZERO))) {
                assertEquals("clean", db.stats().lastShutdown());
            }
        } finally {
            Leaks.listen(null);
        }
    }

    @SuppressWarnings("try")
    private static void leak(Path pool) {
        Database.open(pool).map("m").put(KEY, KEY);
    }

    /** A database stays open while a map or a cursor of it is in use, even if the program has dropped the rest. */
    @Test
    void objectsInUseAreNotCollected() {
        DurableMap map = Database.open(folder.resolve("used.pool")).map("m");
        for (long i = 0; i < 20; i++) {
            System.gc();
            map.put(Bytes.of(i), KEY);
        }
        Cursor cursor = map.cursor();
        map = null;
        long seen = 0;
        while (cursor.advance()) {
            System.gc();
            seen++;
        }
        assertEquals(20, seen);
        assertFalse(cursor.hasNext());
    }
}

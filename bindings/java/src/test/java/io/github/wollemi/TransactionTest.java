package io.github.wollemi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Transactions, batches and snapshots, with several threads. */
class TransactionTest {
    private static byte[] b(String text) {
        return Bytes.of(text);
    }

    @Test
    void aConflictNamesItsKeyAndChangesNothing() {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            DurableMap seats = db.map("seats");
            Transaction transaction = db.begin();
            assertTrue(transaction.map(seats).putIfAbsent(b("7a"), b("alice")));
            assertEquals("alice", Bytes.text(transaction.map(seats).get(b("7a"))), "it reads its own writes");
            assertNull(seats.get(b("7a")), "and no other reader does");
            seats.put(b("7a"), b("bob"));
            ConflictException conflict = assertThrows(ConflictException.class, transaction::commit);
            assertEquals("seats", conflict.map());
            assertArrayEquals(b("7a"), conflict.key());
            assertEquals(WollemiException.Kind.CONFLICT, conflict.kind());
            assertEquals("bob", Bytes.text(seats.get(b("7a"))));
            assertThrows(IllegalStateException.class, transaction::commit);
        }
    }

    @Test
    void whatIsRunIsRunAgainAfterAConflict() throws IOException {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            DurableMap map = db.map("m");
            AtomicInteger runs = new AtomicInteger();
            long result = db.<Long, IOException>transact(tx -> {
                byte[] held = tx.map(map).get(b("k"));
                if (runs.incrementAndGet() < 3) {
                    map.put(b("k"), Bytes.of(runs.get()));
                }
                long next = held == null ? 0 : Bytes.number(held) + 1;
                tx.map(map).put(b("k"), Bytes.of(next));
                return next;
            });
            assertEquals(3, runs.get());
            assertEquals(3, result);
            assertArrayEquals(Bytes.of(3), map.get(b("k")));
        }
    }

    /**
     * A transaction reads many keys that nobody writes, and a range, beside writers of other keys. These may fail its
     * first run, but not the second.
     */
    @Test
    void writesOfOtherKeysFailNoTransactionTwice() throws Exception {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            DurableMap map = db.map("m");
            DurableMap range = db.map("range");
            List<byte[]> read = new ArrayList<>();
            for (long i = 0; i < 1000; i++) {
                read.add(Bytes.of(-1 - i));
                range.put(Bytes.of(i), b("entry"));
            }
            AtomicBoolean ended = new AtomicBoolean();
            ExecutorService pool = Executors.newFixedThreadPool(2);
            try {
                List<Future<?>> writers = new ArrayList<>();
                for (int i = 0; i < 2; i++) {
                    writers.add(pool.submit(() -> {
                        while (!ended.get()) {
                            map.put(Bytes.of(ThreadLocalRandom.current().nextLong(50_000)), b("written"));
                        }
                    }));
                }
                for (int round = 0; round < 20; round++) {
                    AtomicInteger runs = new AtomicInteger();
                    db.transact(tx -> {
                        runs.incrementAndGet();
                        tx.map(map).multiGet(read);
                        tx.map(range).count();
                        tx.map(map).put(b("done"), b("yes"));
                        return null;
                    });
                    assertTrue(runs.get() <= 2, runs + " runs");
                }
                ended.set(true);
                for (Future<?> writer : writers) {
                    writer.get();
                }
            } finally {
                ended.set(true);
                pool.shutdown();
            }
        }
    }

    @Test
    void anExceptionGivesItUpAndIsBelievedOnlyIfWhatWasReadIsSo() {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            DurableMap map = db.map("m");
            var thrown = assertThrows(IOException.class, () -> db.transact(tx -> {
                tx.map(map).put(b("k"), b("v"));
                throw new IOException("given up");
            }));
            assertEquals("given up", thrown.getMessage());
            assertNull(map.get(b("k")));

            AtomicInteger runs = new AtomicInteger();
            String result = db.transact(tx -> {
                tx.map(map).get(b("k"));
                if (runs.incrementAndGet() == 1) {
                    map.put(b("k"), b("another writer's"));
                    throw new IllegalArgumentException("of what never was together");
                }
                return "well";
            });
            assertEquals("well", result);
            assertEquals(2, runs.get());
        }
    }

    @Test
    void aCursorOfATransactionReadsNoMoreThanItShows() {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            DurableMap jobs = db.map("jobs");
            for (long i = 0; i < 100; i++) {
                jobs.put(Bytes.of(i), b("job"));
            }
            try (Transaction transaction = db.begin()) {
                assertArrayEquals(Bytes.of(0), transaction.map(jobs).cursor().next().key());
                transaction.map(jobs).remove(Bytes.of(0));
                jobs.put(Bytes.of(50), b("changed behind it"));
                transaction.commit();
            }
            assertEquals(99, jobs.count());
        }
    }

    /** Threads move amounts between two maps; the total is the same in every snapshot and at the end. */
    @Test
    void nothingIsLostBetweenAccounts() throws Exception {
        int accounts = 20;
        int threads = 4;
        int transfers = 400;
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            DurableMap left = db.map("left");
            DurableMap right = db.map("right");
            for (long i = 0; i < accounts; i++) {
                left.put(Bytes.of(i), Bytes.of(100));
                right.put(Bytes.of(i), Bytes.of(100));
            }
            AtomicBoolean ended = new AtomicBoolean();
            Future<Integer> watcher;
            ExecutorService pool = Executors.newFixedThreadPool(threads + 1);
            try {
                watcher = pool.submit(() -> {
                    int seen = 0;
                    do {
                        try (Snapshot snapshot = db.snapshot()) {
                            assertEquals(200L * accounts, sum(snapshot.map(left)) + sum(snapshot.map(right)));
                        }
                        seen++;
                    } while (!ended.get());
                    return seen;
                });
                List<Callable<Void>> movers = new ArrayList<>();
                for (int i = 0; i < threads; i++) {
                    movers.add(() -> {
                        for (int j = 0; j < transfers; j++) {
                            move(db, left, right, ThreadLocalRandom.current().nextInt(accounts));
                            move(db, right, left, ThreadLocalRandom.current().nextInt(accounts));
                        }
                        return null;
                    });
                }
                for (Future<Void> mover : pool.invokeAll(movers)) {
                    mover.get();
                }
                ended.set(true);
                assertTrue(watcher.get() > 0);
            } finally {
                ended.set(true);
                pool.shutdown();
            }
            assertEquals(200L * accounts, sum(left) + sum(right));
            assertTrue(db.check().isClean());
        }
    }

    private static long sum(ReadableMap map) {
        return map.stream().mapToLong(entry -> Bytes.number(entry.value())).sum();
    }

    private static void move(Database db, DurableMap from, DurableMap to, long account) {
        while (true) {
            try {
                db.transact(tx -> {
                    WritableMap source = tx.map(from);
                    WritableMap target = tx.map(to);
                    byte[] key = Bytes.of(account);
                    source.put(key, Bytes.of(Bytes.number(source.get(key)) - 1));
                    target.put(key, Bytes.of(Bytes.number(target.get(key)) + 1));
                    return null;
                });
                return;
            } catch (ConflictException conflict) {
                // A hundred attempts were not enough beside the other threads: nothing was moved.
            }
        }
    }

    /** Threads increment one key by compute, and no increment is lost. */
    @Test
    void countsAddUp() throws Exception {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            DurableMap map = db.map("counts");
            ExecutorService pool = Executors.newFixedThreadPool(4);
            try {
                List<Callable<Void>> counters = new ArrayList<>();
                for (int i = 0; i < 4; i++) {
                    counters.add(() -> {
                        for (int j = 0; j < 1000; j++) {
                            map.compute(b("n"), old -> Bytes.of(old == null ? 1 : Bytes.number(old) + 1));
                        }
                        return null;
                    });
                }
                for (Future<Void> counter : pool.invokeAll(counters)) {
                    counter.get();
                }
            } finally {
                pool.shutdown();
            }
            assertEquals(4000, Bytes.number(map.get(b("n"))));
        }
    }

    @Test
    void aBatchIsAllOrNothing() {
        try (Database db = Database.inMemory(Options.DEFAULT); Database other = Database.inMemory(Options.DEFAULT)) {
            DurableMap stock = db.map("stock");
            DurableMap orders = db.map("orders");
            stock.put(b("apples"), b("12"));
            Batch first = db.batch().expect(stock, b("apples"), b("12")).expect(orders, b("1"), null)
                    .put(stock, b("apples"), b("10")).put(orders, b("1"), b("2 apples"));
            assertEquals(4, first.size());
            assertTrue(first.commit());
            assertThrows(IllegalStateException.class, first::commit);
            assertEquals(false, db.batch().expect(stock, b("apples"), b("12")).remove(stock, b("apples")).commit());
            assertEquals("10", Bytes.text(stock.get(b("apples"))));
            Batch foreign = db.batch().put(other.map("stock"), b("pears"), b("0")).put(stock, b("apples"), b("0"));
            assertThrows(IllegalArgumentException.class, foreign::commit);
            Batch large = db.batch().put(stock, b("apples"), b("0")).put(stock, new byte[Database.maxKey() + 1], b("0"));
            assertThrows(IllegalArgumentException.class, large::commit);
            assertEquals("10", Bytes.text(stock.get(b("apples"))));
        }
    }

    @Test
    void aRefusedOperationLeavesABatchAsItWas() {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            DurableMap stock = db.map("stock");
            Batch batch = db.batch().put(stock, b("apples"), b("12"));
            assertThrows(NullPointerException.class, () -> batch.remove(stock, null));
            assertThrows(NullPointerException.class, () -> batch.put(stock, null, b("0")));
            assertThrows(NullPointerException.class, () -> batch.put(stock, b("pears"), null));
            assertEquals(1, batch.size());
            assertTrue(batch.put(stock, b("pears"), b("3")).commit());
            assertEquals("12", Bytes.text(stock.get(b("apples"))));
            assertEquals("3", Bytes.text(stock.get(b("pears"))));
        }
    }

    @Test
    void theNativeHalfRefusesABatchThatIsCutOff() {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            Handle handle = db.handle;
            byte[] one = Packed.pack(List.of(b("an operation")));
            assertThrows(IllegalArgumentException.class, () -> handle.commitBatch(handle.number(), one, null));
        }
    }

    @Test
    void aBoundedSnapshotIsOutgrown() {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            DurableMap map = db.map("m");
            for (long i = 0; i < 1000; i++) {
                map.put(Bytes.of(i), b("before"));
            }
            try (Snapshot snapshot = db.snapshotWithin(10_000)) {
                ReadableMap then = snapshot.map(map);
                map.put(Bytes.of(0), b("after"));
                assertEquals("before", Bytes.text(then.get(Bytes.of(0))));
                assertTrue(snapshot.memory() > 0);
                for (long i = 0; i < 1000; i++) {
                    map.put(Bytes.of(i), b("after"));
                }
                var outgrown = assertThrows(WollemiException.class, () -> then.get(Bytes.of(0)));
                assertEquals(WollemiException.Kind.SNAPSHOT_OUTGROWN, outgrown.kind());
            }
        }
    }
}

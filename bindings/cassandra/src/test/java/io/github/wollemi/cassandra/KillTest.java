package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.exceptions.DriverException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A node is killed under load: every acknowledged write is present after its restart, with a commit log and without, at
 * levels {@code process} and {@code disk}, and with pools so small that they are flushed all the time.
 *
 * <p>{@code WOLLEMI_KILLS} is the number of kills, {@code WOLLEMI_SEED} the seed.
 */
class KillTest {
    private static final List<String> MEMTABLES = List.of("wollemi", "wollemi_keep", "wollemi_disk", "wollemi_small");
    private static final int THREADS = 4;
    /** A round ends with a kill after at least this many acknowledged writes, and mostly less than twice as many. */
    private static final int WRITES = 3_000;

    @TempDir
    Path folder;

    private final int kills = Integer.parseInt(System.getenv().getOrDefault("WOLLEMI_KILLS", "1"));
    private final long seed = Long.parseLong(System.getenv().getOrDefault("WOLLEMI_SEED", "" + System.nanoTime()));
    private final Random random = new Random(seed);
    /** By table and key, the last acknowledged value. */
    private final Map<String, Map<Integer, Integer>> acknowledged = new ConcurrentHashMap<>();
    /** The value sent after it and not acknowledged, if any. */
    private final Map<String, Map<Integer, Integer>> sent = new ConcurrentHashMap<>();

    @Test
    void acknowledgedWritesSurviveKills() throws InterruptedException {
        System.out.println("kill: WOLLEMI_SEED=" + seed + " WOLLEMI_KILLS=" + kills);
        try (Node node = Node.alone(folder.resolve("node")).start()) {
            node.session().execute(
                    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            for (String memtable : MEMTABLES) {
                node.session().execute("CREATE TABLE ks." + memtable
                        + " (p int, c int, v int, pad text, PRIMARY KEY (p, c)) WITH memtable = '" + memtable + "'");
                acknowledged.put(memtable, new ConcurrentHashMap<>());
                sent.put(memtable, new ConcurrentHashMap<>());
            }
            for (int kill = 0; kill < kills; kill++) {
                loadUntilKilled(node);
                node.start();
                MEMTABLES.forEach(memtable -> check(node, memtable));
                assertNotEquals("0", node.run("sstables ks wollemi_small"), "it was flushed under load");
            }
        }
    }

    private void loadUntilKilled(Node node) throws InterruptedException {
        Session session = node.session();
        AtomicInteger writes = new AtomicInteger();
        CountDownLatch enough = new CountDownLatch(WRITES + random.nextInt(WRITES));
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            int own = i;
            long seed = random.nextLong();
            Thread thread = new Thread(() -> load(session, own, new Random(seed), writes, enough));
            thread.start();
            threads.add(thread);
        }
        enough.await();
        for (int tenths = 0; node.run("sstables ks wollemi_small").equals("0"); tenths++) {
            assertTrue(tenths < 1200, "it is flushed under load");
            Thread.sleep(100);
        }
        node.kill();
        for (Thread thread : threads) {
            thread.join();
        }
        assertTrue(writes.get() >= WRITES, "there were acknowledged writes");
    }

    /** Writes its own keys, so that it knows the order of each key's values. */
    private void load(Session session, int own, Random draw, AtomicInteger writes, CountDownLatch enough) {
        String pad = "x".repeat(2_000);
        List<PreparedStatement> updates = new ArrayList<>();
        try {
            for (String memtable : MEMTABLES) {
                updates.add(session.prepare("UPDATE ks." + memtable + " SET v = ?, pad = ? WHERE p = ? AND c = ?"));
            }
            while (true) {
                int which = draw.nextInt(updates.size());
                int key = draw.nextInt(5_000) * THREADS + own;
                int value = draw.nextInt();
                String memtable = MEMTABLES.get(which);
                sent.get(memtable).put(key, value);
                session.execute(updates.get(which).bind(value, pad, key % 500, key));
                acknowledged.get(memtable).put(key, value);
                sent.get(memtable).remove(key);
                writes.incrementAndGet();
                enough.countDown();
            }
        } catch (DriverException | IllegalStateException killed) {
            // Writes in flight are in `sent`.
            while (enough.getCount() > 0) {
                // It was not a kill: let the test fail rather than wait.
                enough.countDown();
            }
        }
    }

    private void check(Node node, String memtable) {
        Map<Integer, Integer> found = new ConcurrentHashMap<>();
        for (Row row : node.session().execute("SELECT c, v FROM ks." + memtable)) {
            found.put(row.getInt(0), row.getInt(1));
        }
        Map<Integer, Integer> underway = sent.get(memtable);
        acknowledged.get(memtable).forEach((key, value) -> {
            Integer is = found.get(key);
            assertNotNull(is, () -> memtable + ": key " + key + " is gone");
            if (!is.equals(underway.get(key))) {
                assertEquals(value, is, () -> memtable + ": key " + key);
            }
        });
        // The writes in flight have whatever outcome is found.
        underway.forEach((key, value) -> {
            if (found.containsKey(key)) {
                acknowledged.get(memtable).put(key, found.get(key));
            }
        });
        underway.clear();
    }
}

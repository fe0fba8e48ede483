package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.ResultSetFuture;
import com.datastax.driver.core.Session;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * How long a killed node takes to its first answer, with unflushed rows: with Cassandra's own memtable and the commit
 * log, and with this one without. A measurement, not a test: {@code ./test.sh -Dtest=RestartFigures}.
 *
 * <p>{@code WOLLEMI_MIB} is the unflushed amount, in rows of 1 KiB, and {@code WOLLEMI_ROUNDS} the number of rounds.
 */
class RestartFigures {
    private static final int IN_FLIGHT = 256;
    private static final String PAD = "x".repeat(1_000);

    @TempDir
    Path folder;

    private final int mib = Integer.parseInt(System.getenv().getOrDefault("WOLLEMI_MIB", "128"));
    private final int rounds = Integer.parseInt(System.getenv().getOrDefault("WOLLEMI_ROUNDS", "3"));

    @Test
    void measure() throws Exception {
        for (int round = 0; round < rounds; round++) {
            for (String memtable : List.of("trie", "wollemi", "wollemi_disk")) {
                measure(memtable, folder.resolve(memtable + round));
            }
        }
    }

    private void measure(String memtable, Path folder) throws Exception {
        int rows = mib << 10;
        try (Node node = new Node(folder, "127.0.0.1", "127.0.0.1", Node.freePort("127.0.0.1"), List.of("-Xmx3g")).start()) {
            node.session().execute(
                    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            node.session().execute("CREATE TABLE ks.t (p int PRIMARY KEY, pad text) WITH memtable = '" + memtable + "'");
            double empty = secondsToAnswer(node, -1);
            long began = System.nanoTime();
            load(node.session(), rows);
            double loaded = seconds(began);
            assertEquals("0", node.run("sstables ks t"), "nothing is flushed");
            String pools = kilobytes(node.pools());
            String log = kilobytes(folder.resolve("commitlog"));
            double full = secondsToAnswer(node, rows - 1);
            System.out.printf(Locale.ROOT,
                    "%s: %d MiB of rows in %.1f s; kilobytes of pools: %s, of log: %s; "
                            + "first answer after a kill: %.2f s, without rows: %.2f s; %s%n",
                    memtable, mib, loaded, pools, log, full, empty, replayed(folder.resolve("node.log")));
        }
    }

    private static void load(Session session, int rows) throws InterruptedException, ExecutionException {
        PreparedStatement insert = session.prepare("INSERT INTO ks.t (p, pad) VALUES (?, ?)");
        Semaphore room = new Semaphore(IN_FLIGHT);
        for (int row = 0; row < rows; row++) {
            room.acquire();
            ResultSetFuture done = session.executeAsync(insert.bind(row, PAD));
            done.addListener(room::release, Runnable::run);
            if (row % 10_000 == 0) {
                done.get();
            }
        }
        room.acquire(IN_FLIGHT);
    }

    /** Kills it, starts it, and reads a row that exists (-1: none). */
    private static double secondsToAnswer(Node node, int row) {
        node.kill();
        long began = System.nanoTime();
        node.start();
        var answer = node.session().execute("SELECT pad FROM ks.t WHERE p = " + row).one();
        double took = seconds(began);
        if (row >= 0) {
            assertNotNull(answer, "a row is lost");
        }
        return took;
    }

    private static double seconds(long began) {
        return (System.nanoTime() - began) / 1e9;
    }

    /** Returns the node's last messages about its log. */
    private static String replayed(Path log) throws IOException {
        List<String> said = Files.readAllLines(log).stream().filter(line -> line.contains("replay")).toList();
        return said.get(said.size() - 1).replaceFirst(".* CommitLog ", "");
    }

    private static String kilobytes(Path folder) throws IOException {
        if (!Files.exists(folder)) {
            return "0";
        }
        Process du = new ProcessBuilder("du", "-sk", folder.toString()).start();
        return new String(du.getInputStream().readAllBytes()).split("\\s")[0];
    }
}

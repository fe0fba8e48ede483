package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.driver.core.Session;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The shortest pass through everything: a table, rows, a flush, a kill, a stop. */
class FirstTableTest {
    /** Upper bound on any wait, in tenths of a second; beyond it the test counts as hung. */
    private static final int LONGEST_WAIT = 600;

    @TempDir
    Path folder;

    private static List<String> all(Node node) {
        return node.session().execute("SELECT k, v FROM ks.t").all().stream()
                .map(row -> row.getString(0) + "=" + row.getInt(1)).sorted().toList();
    }

    private static long pools(Node node) throws IOException {
        try (Stream<Path> files = Files.walk(node.pools().resolve("ks"))) {
            return files.filter(file -> file.toString().endsWith(".pool")).count();
        }
    }

    /** Runs the README's statements. {@link Node} has the README's configuration. */
    private static void runReadme(Node node) {
        Session session = node.session();
        session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        session.execute("CREATE TABLE shop.orders (number int PRIMARY KEY)");
        Readme.block("sql").lines().forEach(session::execute);
        session.execute("INSERT INTO shop.prices (name, cents) VALUES ('apple', 30)");
        assertEquals("WollemiMemtable 1", node.run("memtable shop prices"));
        assertEquals("WollemiMemtable 0", node.run("memtable shop orders"));
    }

    @Test
    void rowsSurviveFlushKillAndStop() throws IOException, InterruptedException {
        try (Node node = Node.alone(folder.resolve("node")).start()) {
            runReadme(node);
            Session session = node.session();
            session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("CREATE TABLE ks.t (k text PRIMARY KEY, v int) WITH memtable = 'wollemi'");
            session.execute("INSERT INTO ks.t (k, v) VALUES ('a', 1)");
            session.execute("INSERT INTO ks.t (k, v) VALUES ('b', 2)");
            assertEquals("WollemiMemtable 2", node.run("memtable ks t"));
            assertEquals(List.of("a=1", "b=2"), all(node));

            node.killAndStart();
            assertEquals("WollemiMemtable 2", node.run("memtable ks t"), "adopted");
            assertEquals(List.of("a=1", "b=2"), all(node));
            assertEquals(2, node.session().execute("SELECT v FROM ks.t WHERE k = 'b'").one().getInt(0));

            node.run("flush ks t");
            assertEquals("WollemiMemtable 0", node.run("memtable ks t"));
            assertEquals("1", node.run("sstables ks t"));
            node.session().execute("UPDATE ks.t SET v = 3 WHERE k = 'a'");
            node.session().execute("DELETE FROM ks.t WHERE k = 'b'");
            assertEquals(List.of("a=3"), all(node));

            // The flushed pool is removed some time after the flush.
            for (int tenths = 0; pools(node) > 1; tenths++) {
                assertTrue(tenths < LONGEST_WAIT, "the flushed pool is gone");
                TimeUnit.MILLISECONDS.sleep(100);
            }

            node.stop();
            node.start();
            assertEquals(List.of("a=3"), all(node));
            node.session().execute("TRUNCATE ks.t");
            assertTrue(all(node).isEmpty());
            node.killAndStart();
            assertTrue(all(node).isEmpty(), "truncated rows stay removed");
        }
    }
}

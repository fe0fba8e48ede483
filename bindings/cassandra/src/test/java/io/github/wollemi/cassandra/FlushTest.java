package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Flushes, indexes and what is around them, on one node: each test has a table of its own. */
class FlushTest {
    @TempDir
    static Path folder;

    private static Node node;

    @BeforeAll
    static void start() {
        node = Node.alone(folder.resolve("node")).start();
        node.session().execute(
                "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    }

    @AfterAll
    static void stop() {
        node.close();
    }

    /** What was set aside is the operator's: its number is not used again, and no pool's end removes it. */
    @Test
    void aPoolThatWasSetAsideStays() throws IOException, InterruptedException {
        Node node = Node.alone(folder.resolve("other")).start();
        try (node) {
            node.session().execute(
                    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            node.session().execute("CREATE TABLE ks.t (k int PRIMARY KEY) WITH memtable = 'wollemi_keep'");
            node.session().execute("INSERT INTO ks.t (k) VALUES (1)");
            node.kill();
            Path pool;
            try (Stream<Path> files = Files.walk(node.pools())) {
                pool = files.filter(file -> file.toString().endsWith(".pool")).findFirst().orElseThrow();
            }
            Path aside = Files.move(pool, pool.resolveSibling(pool.getFileName() + ".lost"));
            node.start();
            // Its row is in the commit log.
            assertEquals(1, node.session().execute("SELECT k FROM ks.t").all().size());
            node.session().execute("INSERT INTO ks.t (k) VALUES (2)");
            node.run("flush ks t");
            assertTrue(Files.notExists(pool), "its number is used again");
            assertNotEquals("0", node.run("sstables ks t"));
            node.stop();
            assertTrue(Files.exists(aside), "it is gone");
        }
    }
}

package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.exceptions.DriverException;
import io.github.wollemi.AfterPowerLoss;
import io.github.wollemi.Database;
import io.github.wollemi.Options;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Flushes, indexes and related operations, on one node: each test has its own table. */
class FlushTest {
    /** Upper bound on any wait, in tenths of a second; beyond it the test counts as hung. */
    private static final int LONGEST_WAIT = 600;

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

    private static void waitForSstables(String table) throws InterruptedException {
        for (int tenths = 0; node.run("sstables ks " + table).equals("0"); tenths++) {
            assertTrue(tenths < LONGEST_WAIT, table + " is flushed");
            TimeUnit.MILLISECONDS.sleep(100);
        }
    }

    /** Returns a table's pools. */
    private static List<Path> pools(Node node, String table) throws IOException {
        try (Stream<Path> tables = Files.list(node.pools().resolve("ks"))) {
            Path own = tables.filter(path -> path.getFileName().toString().startsWith(table + "-")).findFirst()
                    .orElseThrow();
            try (Stream<Path> files = Files.list(own)) {
                return files.filter(file -> file.toString().endsWith(".pool")).toList();
            }
        }
    }

    /** A truncation holds the lock of the truncation records, and waits for the writes that have begun. */
    @Test
    void aWriteThatBeginsAFlushDoesNotWaitForATruncation() throws InterruptedException {
        Session session = node.session();
        session.execute("CREATE TABLE ks.busy (k int PRIMARY KEY, v text) WITH memtable = 'wollemi_small'");
        PreparedStatement insert = session.prepare("INSERT INTO ks.busy (k, v) VALUES (?, ?)");
        String pad = "x".repeat(20_000);
        node.run("hold");
        try {
            for (int k = 0; k < 100; k++) {
                session.execute(insert.bind(k, pad));
            }
        } finally {
            node.run("release");
        }
        waitForSstables("busy");
    }

    /** Flushing an index alone would discard the table's part of the commit log. */
    @Test
    void aLargeIndexIsFlushedWithItsTable() throws IOException, InterruptedException {
        Session session = node.session();
        session.execute("CREATE TABLE ks.indexed (k text PRIMARY KEY, v int) WITH memtable = 'wollemi_small'");
        session.execute("CREATE INDEX ON ks.indexed (v)");
        PreparedStatement update = session.prepare("UPDATE ks.indexed SET v = ? WHERE k = ?");
        // The index has an entry, with the row's key, for each value that the row has had.
        String k = "k".repeat(10_000);
        for (int v = 0; v < 300; v++) {
            session.execute(update.bind(v, k));
        }
        waitForSstables("indexed");
        String log = Files.readString(node.folder().resolve("node.log"));
        assertFalse(log.contains("Enqueuing flush of ks.indexed."), "its index is flushed alone");
        assertEquals(1, session.execute("SELECT k FROM ks.indexed WHERE v = 299").all().size());
    }

    @Test
    void anIndexIsBuiltFromRowsThatAreNotFlushed() throws InterruptedException {
        Session session = node.session();
        session.execute("CREATE TABLE ks.before (k int PRIMARY KEY, v int) WITH memtable = 'wollemi'");
        for (int k = 0; k < 500; k++) {
            session.execute("INSERT INTO ks.before (k, v) VALUES (?, ?)", k, k % 10);
        }
        assertEquals("0", node.run("sstables ks before"));
        session.execute("CREATE INDEX before_v ON ks.before (v)");
        String built = "SELECT index_name FROM system.\"IndexInfo\""
                + " WHERE table_name = 'ks' AND index_name = 'before_v'";
        for (int tenths = 0; session.execute(built).one() == null; tenths++) {
            assertTrue(tenths < LONGEST_WAIT, "the index is built");
            TimeUnit.MILLISECONDS.sleep(100);
        }
        session.execute("UPDATE ks.before SET v = 3 WHERE k = 0");
        assertEquals(51, session.execute("SELECT k FROM ks.before WHERE v = 3").all().size());
        assertEquals(49, session.execute("SELECT k FROM ks.before WHERE v = 0").all().size());
    }

    @Test
    void aPoolThatCannotBeMarkedIsFlushed() {
        Session session = node.session();
        session.execute("CREATE TABLE ks.unmarked (k int PRIMARY KEY) WITH memtable = 'wollemi'");
        session.execute("INSERT INTO ks.unmarked (k) VALUES (1)");
        node.run("break ks unmarked");
        node.run("flush ks unmarked");
        assertEquals("1", node.run("sstables ks unmarked"));
        assertEquals(1, session.execute("SELECT k FROM ks.unmarked").all().size());
    }

    /** A write that the memtable refuses stays in the commit log: its replay must not keep the node from starting. */
    @Test
    void aNodeStartsAfterAWriteThatItHasRefused() {
        Node node = Node.alone(folder.resolve("refusing")).start();
        try (node) {
            Session session = node.session();
            session.execute(
                    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("CREATE TABLE ks.t (p text, c text, PRIMARY KEY (p, c)) WITH memtable = 'wollemi_keep'");
            session.execute("INSERT INTO ks.t (p, c) VALUES ('a', 'a')");
            String half = "x".repeat(40_000);
            DriverException refused = assertThrows(DriverException.class,
                    () -> session.execute("INSERT INTO ks.t (p, c) VALUES (?, ?)", half, half));
            session.execute("INSERT INTO ks.t (p, c) VALUES ('b', 'b')");
            node.killAndStart();
            assertEquals(2, node.session().execute("SELECT p FROM ks.t").all().size(), () -> "without " + refused);
        }
    }

    /** SSTables may have keys that no pool can have: of an earlier memtable of the table, or of another node. */
    @Test
    void rowsInSstablesMayHaveKeysThatAreTooLongForAPool() {
        Session session = node.session();
        session.execute("CREATE TABLE ks.long (p text, c text, v int, PRIMARY KEY (p, c)) "
                + "WITH memtable = 'skiplist' AND gc_grace_seconds = 0");
        String half = "x".repeat(40_000);
        String whole = "y".repeat(65_530);
        for (String p : List.of(half, whole)) {
            session.execute("INSERT INTO ks.long (p, c, v) VALUES (?, ?, 1)", p, half);
            session.execute("INSERT INTO ks.long (p, c, v) VALUES (?, 'gone', 1)", p);
        }
        node.run("flush ks long");
        for (String p : List.of(half, whole)) {
            session.execute("DELETE FROM ks.long WHERE p = ? AND c = 'gone'", p);
        }
        node.run("flush ks long");
        session.execute("ALTER TABLE ks.long WITH memtable = 'wollemi'");
        session.execute("INSERT INTO ks.long (p, c, v) VALUES (?, 'b', 2)", half);
        assertEquals("WollemiMemtable 1", node.run("memtable ks long"));
        for (String p : List.of(half, whole)) {
            int more = p.equals(half) ? 1 : 0;
            assertEquals(1, session.execute("SELECT v FROM ks.long WHERE p = ? AND c = ?", p, half).all().size());
            assertEquals(1 + more, session.execute("SELECT v FROM ks.long WHERE p = ?", p).all().size());
            assertEquals(1, session.execute("SELECT v FROM ks.long WHERE p = ? AND c >= ?", p, half).all().size());
            assertEquals(more, session.execute("SELECT v FROM ks.long WHERE p = ? AND c < ?", p, half).all().size());
            String descending = "SELECT v FROM ks.long WHERE p = ? ORDER BY c DESC";
            assertEquals(1 + more, session.execute(descending, p).all().size());
            String token = "SELECT v FROM ks.long WHERE token(p) >= token(?) AND token(p) <= token(?)";
            assertEquals(1 + more, session.execute(token, p, p).all().size());
        }
        assertEquals(3, session.execute("SELECT v FROM ks.long").all().size());
        node.run("compact ks long");
        assertEquals(3, session.execute("SELECT v FROM ks.long").all().size());
    }

    /** The pool stays, and its rows are in SSTables too. */
    @Test
    void aFlushSucceedsIfItsPoolCannotBeRetired() throws IOException {
        Session session = node.session();
        session.execute("CREATE TABLE ks.stays (k int PRIMARY KEY, v int) WITH memtable = 'wollemi'");
        session.execute("CREATE INDEX stays_v ON ks.stays (v)");
        session.execute("INSERT INTO ks.stays (k, v) VALUES (1, 2)");
        Path pool = pools(node, "stays").get(0);
        // It keeps the file of this name, which marks the pool as retired, from being created.
        Path obstacle = pool.resolveSibling(pool.getFileName().toString().replace(".pool", ".dead"));
        Files.createDirectory(obstacle);
        node.run("flush ks stays");
        assertEquals("1", node.run("sstables ks stays"));
        assertEquals(1, session.execute("SELECT k FROM ks.stays WHERE v = 2").all().size());
    }

    @Test
    void aWriteThatFailsTakesNoRowOutOfAnIndex() {
        Session session = node.session();
        session.execute("CREATE TABLE ks.whole (p text, c text, v text, PRIMARY KEY (p, c)) WITH memtable = 'wollemi'");
        session.execute("CREATE INDEX ON ks.whole (v)");
        String p = "p".repeat(40_000);
        session.execute("INSERT INTO ks.whole (p, c, v) VALUES (?, 'a', 'old')", p);
        // The second key is too long for a pool. The batch is of one partition, and so all or nothing.
        assertThrows(DriverException.class, () -> session.execute("BEGIN UNLOGGED BATCH "
                + "UPDATE ks.whole SET v = 'new' WHERE p = ? AND c = 'a'; "
                + "INSERT INTO ks.whole (p, c, v) VALUES (?, ?, 'new'); APPLY BATCH", p, p, "c".repeat(40_000)));
        assertEquals("old", session.execute("SELECT v FROM ks.whole WHERE p = ?", p).one().getString(0));
        assertEquals(1, session.execute("SELECT c FROM ks.whole WHERE v = 'old'").all().size());
        assertEquals(0, session.execute("SELECT c FROM ks.whole WHERE v = 'new'").all().size());
    }

    @Test
    void toAskForAPartitionOpensNoSnapshot() {
        Session session = node.session();
        session.execute("CREATE TABLE ks.wide (p text, c int, PRIMARY KEY (p, c)) WITH memtable = 'wollemi'");
        for (int c = 0; c < 200; c++) {
            session.execute("INSERT INTO ks.wide (p, c) VALUES ('p', ?)", c);
        }
        assertEquals("0", node.run("leaks ks wide p"));
    }

    /** Cassandra discards a memtable without waiting for the compactions and metrics that hold it. */
    @Test
    void aDiscardedMemtableMayBeAsked() throws IOException, InterruptedException {
        Session session = node.session();
        session.execute("CREATE TABLE ks.gone (k text PRIMARY KEY) WITH memtable = 'wollemi'");
        session.execute("INSERT INTO ks.gone (k) VALUES ('a')");
        node.run("keep ks gone");
        node.run("flush ks gone");
        for (int tenths = 0; !pools(node, "gone").isEmpty(); tenths++) {
            assertTrue(tenths < LONGEST_WAIT, "the flushed pool is gone");
            TimeUnit.MILLISECONDS.sleep(100);
        }
        // A compaction that were told that the partition is not there would purge tombstones that cover it.
        assertEquals("holds it, of 0", node.run("kept ks gone a"));
    }

    /** A drain flushes no memtable without rows, so it does not discard it. */
    @Test
    void aDrainClosesAPoolWithoutRows() throws IOException {
        Node node = Node.alone(folder.resolve("drained")).start();
        try (node) {
            Session session = node.session();
            session.execute(
                    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("CREATE TABLE ks.refused (p text, c text, PRIMARY KEY (p, c)) WITH memtable = 'wollemi'");
            String half = "x".repeat(40_000);
            assertThrows(DriverException.class,
                    () -> session.execute("INSERT INTO ks.refused (p, c) VALUES (?, ?)", half, half));
            List<Path> pools = pools(node, "refused");
            assertEquals(1, pools.size());
            node.run("drain");
            assertEquals("WollemiMemtable 0", node.run("memtable ks refused"));
            node.kill();
            Options look = Options.DEFAULT.create(false).readOnly(true).afterPowerLoss(AfterPowerLoss.LOOK);
            try (Database pool = Database.open(pools.get(0), look)) {
                assertEquals("clean", pool.stats().lastShutdown());
            }
            node.start();
            assertEquals(0, node.session().execute("SELECT p FROM ks.refused").all().size());
        }
    }

    /** Otherwise metrics would count the partitions of a large pool again after every few writes. */
    @Test
    void anAdoptedPoolCountsWithAllItsRows() {
        Node node = Node.alone(folder.resolve("adopted")).start();
        try (node) {
            node.session().execute(
                    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            node.session().execute("CREATE TABLE ks.t (p int PRIMARY KEY, pad text) WITH memtable = 'wollemi'");
            int rows = 32 << 10;
            node.run("fill ks t " + rows);
            node.killAndStart();
            long offHeap = Long.parseLong(node.run("memory ks t").split(" ")[2]);
            assertTrue(offHeap >= (long) rows * Figures.PAD.length(), "the memtable owns " + offHeap + " bytes");
        }
    }

    /** A pool that was switched out before a truncation is removed at the start; the clock of both may be set back. */
    @Test
    void aWriteAfterATruncationSurvivesAClockThatIsSetBack() {
        Node node = Node.alone(folder.resolve("clock")).start();
        try (node) {
            node.session().execute(
                    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            node.session().execute("CREATE TABLE ks.t (k text PRIMARY KEY) WITH memtable = 'wollemi'");
            node.session().execute("INSERT INTO ks.t (k) VALUES ('a')");
            node.run("flush ks t");
            // Once with a truncation that this process has seen, once with one that an earlier process has.
            node.run("truncated ks t 1");
            for (String k : List.of("b", "c")) {
                node.session().execute("INSERT INTO ks.t (k) VALUES (?)", k);
                node.run("switch ks t");
                node.killAndStart();
                assertEquals(1, node.session().execute("SELECT k FROM ks.t WHERE k = ?", k).all().size());
            }
            // A truncation after the mark still removes the pool.
            node.session().execute("INSERT INTO ks.t (k) VALUES ('d')");
            node.run("switch ks t");
            node.run("truncated ks t 2");
            node.killAndStart();
            assertEquals(0, node.session().execute("SELECT k FROM ks.t WHERE k = 'd'").all().size());
        }
    }

    /**
     * A pool that was set aside is kept for the operator: its number is not reused, and the removal of another pool
     * does not remove it.
     */
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

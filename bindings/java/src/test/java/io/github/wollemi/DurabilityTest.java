package io.github.wollemi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Levels, and the durability of writes. */
class DurabilityTest {
    @TempDir
    Path folder;

    /** Returns the log's two positions from the JSON statistics. */
    private static long[] log(Database db) {
        String json = db.stats().json();
        return new long[] {number(json, "appended"), number(json, "durable")};
    }

    private static long number(String json, String name) {
        String behind = json.substring(json.indexOf("\"" + name + "\":") + name.length() + 3);
        return Long.parseLong(behind.split("[,}]")[0]);
    }

    @Test
    void writesOfLevelDiskAreDurableAsAskedFor() {
        Path pool = folder.resolve("d.pool");
        Options options = Options.DEFAULT.level(Level.DISK).logLimit(64 << 20).syncWithin(Duration.ofHours(1));
        try (Database db = Database.open(pool, options)) {
            assertEquals(Level.DISK, db.level());
            DurableMap map = db.map("m");
            map.put(Bytes.of(1), Bytes.of("immediate"));
            assertEquals(log(db)[0], log(db)[1]);

            DurableMap eventual = map.withDurability(Durability.EVENTUAL);
            eventual.put(Bytes.of(2), Bytes.of("eventual"));
            db.batch().put(map, Bytes.of(3), Bytes.of("eventual")).durability(Durability.EVENTUAL).commit();
            Transaction transaction = db.begin(Durability.EVENTUAL);
            transaction.map(map).put(Bytes.of(4), Bytes.of("eventual"));
            transaction.commit();
            assertTrue(log(db)[0] > log(db)[1], "no write has waited for the disk");
            db.sync();
            assertEquals(log(db)[0], log(db)[1]);

            db.setDurability(Durability.EVENTUAL);
            map.put(Bytes.of(5), Bytes.of("eventual"));
            assertTrue(log(db)[0] > log(db)[1]);
            db.setSyncWithin(Duration.ofMillis(1));
            db.sync();
            assertEquals(5, db.checkpoint(true));
        }
        try (Database db = Database.open(pool)) {
            assertEquals(Level.DISK, db.level(), "a pool with a log keeps it");
            assertEquals(5, db.map("m").count());
        }
    }

    @Test
    void anAbandonedPoolIsNotWrittenWhenItIsClosed() {
        for (Level level : new Level[] {Level.PROCESS, Level.DISK}) {
            Path pool = folder.resolve(level + ".pool");
            Options options = Options.DEFAULT.level(level);
            try (Database db = Database.open(pool, options)) {
                db.map("m").put(Bytes.of(1), Bytes.of("one"));
                db.abandon();
            }
            try (Database db = Database.open(pool, options)) {
                assertEquals("process crash", db.stats().lastShutdown());
                assertEquals(1, db.map("m").count());
            }
            Database closed = Database.open(pool, options);
            assertEquals("clean", closed.stats().lastShutdown());
            closed.close();
            assertThrows(IllegalStateException.class, closed::abandon);
        }
    }

    @Test
    void whereALevelCannotBeHadItIsRefused() {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            assertEquals(-1, db.checkpoint(false));
            db.sync();
        }
        assertThrows(WollemiException.class,
                () -> Database.open(folder.resolve("p.pool"), Options.DEFAULT.level(Level.POWER)).close());
    }
}

package io.github.wollemi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Operations of maps, one thread at a time. */
class MapTest {
    @TempDir
    Path folder;

    private static byte[] b(String text) {
        return Bytes.of(text);
    }

    private static WollemiException.Kind kindOf(org.junit.jupiter.api.function.Executable call) {
        return assertThrows(WollemiException.class, call).kind();
    }

    @Test
    void whatIsPutIsThereAfterReopening() {
        Path pool = folder.resolve("a.pool");
        try (Database db = Database.open(pool); DurableMap map = db.map("letters")) {
            map.put(b("a"), b("alpha"));
            assertEquals("alpha", Bytes.text(map.get(b("a"))));
            assertNull(map.get(b("b")));
        }
        try (Database db = Database.open(pool)) {
            assertEquals("clean", db.stats().lastShutdown());
            assertEquals("alpha", Bytes.text(db.map("letters").get(b("a"))));
        }
    }

    @Test
    void writesSayWhetherTheyChangedSomething() {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            DurableMap map = db.map("m");
            assertTrue(map.putIfAbsent(b("k"), b("1")));
            assertFalse(map.putIfAbsent(b("k"), b("2")));
            assertTrue(map.replace(b("k"), b("3")));
            assertFalse(map.replace(b("other"), b("3")));
            assertFalse(map.compareAndSet(b("k"), b("1"), b("4")));
            assertTrue(map.compareAndSet(b("k"), b("3"), b("4")));
            assertTrue(map.compareAndSet(b("new"), null, b("n")));
            assertTrue(map.compareAndSet(b("new"), b("n"), null));
            assertTrue(map.compareAndSet(b("new"), null, null));
            assertFalse(map.compareAndSet(b("k"), null, null));
            assertEquals("[k=4]", Bytes.all(map).toString());
            assertTrue(map.remove(b("k")));
            assertFalse(map.remove(b("k")));
            assertTrue(map.isEmpty());
            map.put(new byte[0], new byte[0]);
            assertArrayEquals(new byte[0], map.get(new byte[0]));
            assertEquals(1, map.count());
            assertArrayEquals(b("x"), map.compute(b("c"), old -> old == null ? b("x") : b("wrong")));
            assertNull(map.compute(b("c"), old -> Arrays.equals(old, b("x")) ? null : b("wrong")));
            assertFalse(map.containsKey(b("c")));
        }
    }

    @Test
    void viewsAreThoseOfANavigableMap() {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            DurableMap map = db.map("m");
            for (String key : List.of("a", "ab", "b", "c", "d")) {
                map.put(b(key), b(key.toUpperCase()));
            }
            assertEquals("[ab=AB, b=B]", Bytes.all(map.subMap(b("a"), false, b("c"), false)).toString());
            assertEquals("[a=A, ab=AB]", Bytes.all(map.prefixMap(b("a"))).toString());
            assertEquals("[d=D, c=C, b=B, ab=AB, a=A]", Bytes.all(map.descendingMap()).toString());
            ReadableMap down = map.descendingMap().subMap(b("c"), true, b("a"), false);
            assertEquals("[c=C, b=B, ab=AB]", Bytes.all(down).toString());
            assertEquals("c=C", down.firstEntry().toString());
            assertEquals("ab=AB", down.lastEntry().toString());
            assertEquals("ab=AB", down.higherEntry(b("b")).toString());
            assertEquals("c=C", down.lowerEntry(b("b")).toString());
            assertNull(down.get(b("d")));
            assertEquals(3, down.count());
            assertEquals("b=B", map.floorEntry(b("bz")).toString());
            assertEquals("c=C", map.ceilingEntry(b("bz")).toString());
            assertEquals("d=D", map.lastEntry().toString());
            assertNull(map.higherEntry(b("d")));
            assertTrue(map.subMap(b("z"), true, b("a"), true).isEmpty(), "bounds that cross are an empty view");
            byte[] top = {(byte) 0xff};
            map.put(top, b("top"));
            assertArrayEquals(top, map.prefixMap(top).firstEntry().key());
            assertEquals(1, map.prefixMap(top).count());
        }
    }

    @Test
    void manyKeysAreReadAtOnce() {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            DurableMap map = db.map("m");
            byte[] large = new byte[3 << 20];
            List<byte[]> keys = new java.util.ArrayList<>();
            for (long i = 0; i < 3000; i++) {
                keys.add(Bytes.of(i));
                if (i % 3 != 0) {
                    map.put(Bytes.of(i), i % 200 == 1 ? large : Bytes.of(i));
                }
            }
            List<byte[]> values = map.multiGet(keys);
            assertEquals(keys.size(), values.size());
            for (int i = 0; i < keys.size(); i++) {
                byte[] expected = i % 3 == 0 ? null : i % 200 == 1 ? large : Bytes.of(i);
                assertArrayEquals(expected, values.get(i), "key " + i);
            }
            assertEquals(List.of(), map.multiGet(List.of()));
            assertNull(map.headMap(Bytes.of(1), false).multiGet(keys).get(1));
        }
    }

    @Test
    void nullAmongManyKeysIsAMistake() {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            DurableMap map = db.map("m");
            map.put(b("k"), b("v"));
            // One that would be requested again and again, and one that would shift the values after it.
            for (List<byte[]> keys : List.of(Arrays.asList((byte[]) null), Arrays.asList(null, b("k")))) {
                assertThrows(IllegalArgumentException.class,
                        () -> assertTimeoutPreemptively(Duration.ofSeconds(60), () -> map.multiGet(keys)));
            }
        }
    }

    @Test
    void mistakesAreExceptions() {
        Path pool = folder.resolve("b.pool");
        try (Database db = Database.open(pool, Options.DEFAULT.lockWait(java.time.Duration.ZERO))) {
            DurableMap map = db.map("m");
            assertThrows(IllegalArgumentException.class, () -> map.put(new byte[Database.maxKey() + 1], b("v")));
            assertThrows(IllegalArgumentException.class, () -> map.put(b("k"), new byte[Database.maxValue() + 1]));
            assertThrows(IllegalArgumentException.class, () -> map.put(b("k"), null));
            assertThrows(IllegalArgumentException.class, () -> map.get((byte[]) null));
            assertThrows(IllegalArgumentException.class, () -> db.map(""));
            assertThrows(IllegalArgumentException.class, () -> db.map("other", "no such index"));
            assertThrows(IllegalArgumentException.class, () -> Options.DEFAULT.maxSize(-1));
            assertEquals(WollemiException.Kind.OTHER_INDEX, kindOf(() -> db.map("m", "part")));
            assertEquals(WollemiException.Kind.IN_USE,
                    kindOf(() -> Database.open(pool, Options.DEFAULT.lockWait(java.time.Duration.ZERO))));
            assertEquals(WollemiException.Kind.IN_USE, kindOf(() -> db.dropMap("m")));
            map.put(b("k"), b("v"));
        }
        Options reading = Options.DEFAULT.readOnly(true);
        try (Database db = Database.open(pool, reading)) {
            assertEquals("v", Bytes.text(db.map("m").get(b("k"))));
            assertEquals(WollemiException.Kind.READ_ONLY, kindOf(() -> db.map("m").put(b("k"), b("w"))));
        }
        assertEquals(WollemiException.Kind.MISSING,
                kindOf(() -> Database.open(folder.resolve("none"), Options.DEFAULT.create(false))));
        Path foreign = folder.resolve("foreign");
        assertEquals(WollemiException.Kind.POOL, kindOf(() -> {
            Files.writeString(foreign, "This is a text and no pool, and that is what the message says.".repeat(100));
            Database.open(foreign);
        }));
    }

    @Test
    void aPanicBecomesAnException() {
        var panic = assertThrows(WollemiException.class, () -> Handle.panic(b("on purpose")));
        assertEquals(WollemiException.Kind.PANIC, panic.kind());
        assertTrue(panic.getMessage().contains("on purpose"), panic.getMessage());
    }

    @Test
    void aFullPoolRefusesAndGoesOn() {
        try (Database db = Database.open(folder.resolve("full.pool"), Options.DEFAULT.maxSize(8 << 20))) {
            DurableMap map = db.map("m");
            byte[] value = new byte[100_000];
            long put = 0;
            try {
                for (; put < 1000; put++) {
                    map.put(Bytes.of(put), value);
                }
            } catch (WollemiException full) {
                assertEquals(WollemiException.Kind.FULL, full.kind());
            }
            assertTrue(put > 10 && put < 1000, put + " values in 8 MiB");
            assertEquals(put, map.count());
            for (long i = 0; i < put; i++) {
                assertTrue(map.remove(Bytes.of(i)));
            }
            assertTrue(db.check().isClean());
        }
    }

    @Test
    void mapsAreListedFoundAndDropped() {
        try (Database db = Database.inMemory(Options.DEFAULT.index("part"))) {
            assertEquals(Optional.empty(), db.findMap("a"));
            try (DurableMap a = db.map("ä name of UTF-8"); DurableMap b = db.map("b", "roart")) {
                assertEquals("part", a.index());
                assertEquals("ä name of UTF-8", a.name());
                assertTrue(b.isOrdered());
            }
            assertEquals(List.of(new MapInfo("b", "roart"), new MapInfo("ä name of UTF-8", "part")), db.maps());
            assertTrue(db.findMap("b").isPresent());
            try (Database other = Database.inMemory(Options.DEFAULT)) {
                assertFalse(other.dropMap("b"));
            }
            assertTrue(db.dropMap("ä name of UTF-8"));
            assertFalse(db.dropMap("ä name of UTF-8"));
        }
    }

    /** Each index holds a map; the hash table supports single keys and a cursor over everything, in its own order. */
    @Test
    void everyIndexHoldsAMap() {
        assertEquals("roart", Database.indexes().get(0));
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            for (String index : Database.indexes()) {
                DurableMap map = db.map("of " + index, index);
                for (long i = 0; i < 1000; i++) {
                    map.put(Bytes.of(i), Bytes.of(-i));
                }
                assertEquals(1000, map.count(), index);
                assertEquals(1000, map.stream().map(entry -> Bytes.number(entry.key())).distinct().count(), index);
                if (map.isOrdered()) {
                    assertArrayEquals(Bytes.of(999), map.descendingMap().firstEntry().key(), index);
                    map.put(new byte[0], b("of the smallest key"));
                    assertArrayEquals(new byte[0], map.firstEntry().key(), index);
                } else {
                    assertThrows(UnsupportedOperationException.class, () -> map.headMap(b("a"), true).firstEntry());
                    assertThrows(UnsupportedOperationException.class, map::firstEntry);
                    assertThrows(UnsupportedOperationException.class, map::lastEntry);
                    assertThrows(UnsupportedOperationException.class, map.descendingMap()::firstEntry);
                    assertFalse(map.isEmpty());
                    try (Snapshot snapshot = db.snapshot()) {
                        assertArrayEquals(Bytes.of(-7), snapshot.map(map).get(Bytes.of(7)));
                        assertThrows(UnsupportedOperationException.class, () -> snapshot.map(map).isEmpty());
                    }
                }
            }
        }
    }

    @Test
    void statsAndCheckTellOfThePool() {
        Path pool = folder.resolve("s.pool");
        try (Database db = Database.open(pool, Options.DEFAULT.maxSize(1 << 30))) {
            db.map("m").put(b("k"), b("v"));
            assertEquals("done", db.waitRecovered());
            Stats stats = db.stats();
            assertEquals("new", stats.lastShutdown());
            assertEquals("process", stats.level());
            assertEquals(Level.PROCESS, db.level());
            assertEquals(1 << 30, stats.maxSize());
            assertEquals(stats.reserved(), stats.used() + stats.free() + stats.unswept());
            assertTrue(stats.openedIn().toNanos() > 0);
            assertTrue(stats.json().contains("\"uuid\":\"" + stats.uuid() + "\""), stats.json());
            Check check = db.check();
            assertTrue(check.isClean(), check.faults().toString());
            assertTrue(check.json().contains("\"keys\":1"), check.json());
        }
    }
}

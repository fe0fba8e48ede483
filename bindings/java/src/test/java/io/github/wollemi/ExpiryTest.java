package io.github.wollemi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Expiring entries. */
class ExpiryTest {
    private static final Duration HOUR = Duration.ofHours(1);

    private static byte[] b(String text) {
        return Bytes.of(text);
    }

    @Test
    void whatIsPastItsEndIsAbsent() {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            ExpiringMap map = new ExpiringMap(db.map("sessions"));
            map.put(b("alice"), b("token"), HOUR);
            map.put(b("bob"), b("token"), Duration.ZERO);
            map.put(b("carol"), b("token"), null);
            assertEquals("token", Bytes.text(map.get(b("alice"))));
            assertNull(map.get(b("bob")));
            assertEquals(Optional.empty(), map.getLiving(b("carol")).left());
            Duration left = map.getLiving(b("alice")).left().orElseThrow();
            assertTrue(left.compareTo(HOUR) <= 0 && !left.isZero(), left.toString());
            assertEquals("[alice=token, carol=token]", map.alive(map.map()).toList().toString());
            assertFalse(map.putIfAbsent(b("alice"), b("other"), null));
            assertTrue(map.putIfAbsent(b("bob"), b("other"), null));
            assertTrue(map.touch(b("carol"), Duration.ZERO));
            assertFalse(map.touch(b("carol"), null));
            assertTrue(map.remove(b("bob")));
            assertFalse(map.remove(b("bob")));

            assertTrue(db.batch().put(map.map(), b("dave"), map.bytes(b("t"), HOUR)).commit());
            db.transact(tx -> {
                tx.map(map.map()).put(b("eve"), map.bytes(b("t"), Duration.ZERO));
                return null;
            });
            try (Snapshot snapshot = db.snapshot()) {
                map.remove(b("dave"));
                assertEquals("[alice=token, dave=t]", map.alive(snapshot.map(map.map())).toList().toString());
            }
            db.map("sessions").put(b("foreign"), b("short"));
            var refused = assertThrows(WollemiException.class, () -> map.get(b("foreign")));
            assertEquals(WollemiException.Kind.NOT_EXPIRING, refused.kind());
        }
    }

    @Test
    void aSweeperRemovesIt() throws InterruptedException {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            ExpiringMap map = new ExpiringMap(db.map("sessions"));
            for (long i = 0; i < 1000; i++) {
                map.put(Bytes.of(i), b("token"), i % 2 == 0 ? Duration.ZERO : null);
            }
            try (Sweeper sweeper = map.sweeper(Duration.ofMillis(1))) {
                while (sweeper.removed() < 500) {
                    Thread.sleep(1);
                }
            }
            assertEquals(500, map.map().count());
        }
    }
}

package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.cassandra.db.memtable.Memtable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The request of a flush, without a node. */
class FlushTriggerTest {
    private final AtomicInteger requests = new AtomicInteger();
    private final Memtable.Owner owner = (Memtable.Owner) Proxy.newProxyInstance(getClass().getClassLoader(),
            new Class<?>[] {Memtable.Owner.class}, (proxy, method, arguments) -> {
                assertEquals("signalFlushRequired", method.getName());
                requests.incrementAndGet();
                return null;
            });

    @TempDir
    Path directory;

    @BeforeAll
    static void configure() {
        Offline.configure();
    }

    private Settings settings() {
        return Offline.settings(directory);
    }

    private static void fill(Pool pool) {
        pool.rows().put(new byte[1], new byte[2 << 20]);
    }

    @Test
    void theFirstWriteToALargePoolRequestsItsFlush() {
        try (Pool pool = Pool.open(directory.resolve("1.pool"), settings(), Offline.table())) {
            fill(pool);
            FlushTrigger trigger = new FlushTrigger(null, owner, settings());
            trigger.wrote(pool, 1);
            trigger.wrote(pool, 1);
            assertEquals(1, requests.get());
        }
    }

    @Test
    void aWriteThatFindsALargePoolFullRequestsItsFlush() {
        try (Pool pool = Pool.open(directory.resolve("1.pool"), settings(), Offline.table())) {
            FlushTrigger trigger = new FlushTrigger(null, owner, settings());
            trigger.wrote(pool, 1);
            trigger.full(pool);
            assertEquals(0, requests.get(), "it is the disk that is full");
            fill(pool);
            trigger.full(pool);
            trigger.full(pool);
            assertEquals(1, requests.get());
        }
    }
}

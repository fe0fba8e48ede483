package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.wollemi.Level;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The request of a flush, without a node. */
class FlushTriggerTest {
    private static final TableMetadataRef TABLE = TableMetadataRef.forOfflineTools(
            TableMetadata.builder("ks", "t").partitioner(Murmur3Partitioner.instance)
                    .addPartitionKeyColumn("k", Int32Type.instance).build());

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
        DatabaseDescriptor.clientInitialization();
    }

    private Settings settings() {
        return new Settings(directory, Level.PROCESS, Settings.CommitLogUse.KEEP, 1 << 20);
    }

    private static void fill(Pool pool) {
        pool.rows().put(new byte[1], new byte[2 << 20]);
    }

    @Test
    void theFirstWriteToALargePoolRequestsItsFlush() {
        try (Pool pool = Pool.open(directory.resolve("1.pool"), settings(), TABLE)) {
            fill(pool);
            FlushTrigger trigger = new FlushTrigger(null, owner, settings());
            trigger.wrote(pool, 1);
            trigger.wrote(pool, 1);
            assertEquals(1, requests.get());
        }
    }

    @Test
    void aWriteThatFindsALargePoolFullRequestsItsFlush() {
        try (Pool pool = Pool.open(directory.resolve("1.pool"), settings(), TABLE)) {
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

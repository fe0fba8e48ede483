package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.wollemi.Database;
import io.github.wollemi.DurableMap;
import io.github.wollemi.Options;
import java.nio.BufferUnderflowException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.marshal.BytesType;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The pools of a table. */
class PoolsTest {
    private static final TableMetadataRef TABLE = TableMetadataRef.forOfflineTools(
            TableMetadata.builder("ks", "t").partitioner(Murmur3Partitioner.instance)
                    .addPartitionKeyColumn("k", Int32Type.instance).addRegularColumn("v", BytesType.instance).build());

    @BeforeAll
    static void configure() {
        DatabaseDescriptor.clientInitialization();
    }

    private static void setSwitchedOut(Path path, byte[] at) {
        try (Database database = Database.open(path, Options.DEFAULT); DurableMap meta = database.map("about")) {
            meta.put("switched out".getBytes(), at);
        }
    }

    /** A pool whose adoption fails is closed, and so are the others, so that a later attempt can open them. */
    @Test
    void poolsAreClosedIfOneCannotBeAdopted(@TempDir Path directory) {
        Settings settings = Settings.take(new HashMap<>(Map.of("directory", directory.toString())));
        Pools pools = Pools.of(settings, TABLE);
        List<Path> paths = List.of(pools.create(settings, TABLE).path(), pools.create(settings, TABLE).path());
        List.copyOf(Pool.allOpen()).forEach(Pool::close);
        for (Path path : paths) {
            setSwitchedOut(path, new byte[3]);
            assertThrows(BufferUnderflowException.class, () -> pools.adopt(settings, TABLE, () -> 0));
            assertEquals(0, Pool.allOpen().size());
            setSwitchedOut(path, new byte[] {1, 0, 0, 0, 0, 0, 0, 0});
        }
        List<Pool> adopted = pools.adopt(settings, TABLE, () -> 0);
        assertEquals(paths, adopted.stream().map(Pool::path).toList());
        adopted.forEach(Pool::close);
    }
}

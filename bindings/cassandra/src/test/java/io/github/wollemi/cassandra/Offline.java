package io.github.wollemi.cassandra;

import io.github.wollemi.Level;
import java.nio.file.Path;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;

/** Tables for tests without a node. */
final class Offline {
    private Offline() {}

    /** Makes Cassandra's classes usable. */
    static void configure() {
        DatabaseDescriptor.clientInitialization();
    }

    /** Returns a table with an id of its own, by which the process remembers truncations. */
    static TableMetadataRef table() {
        return TableMetadataRef.forOfflineTools(TableMetadata.builder("ks", "t")
                .partitioner(Murmur3Partitioner.instance).addPartitionKeyColumn("k", Int32Type.instance).build());
    }

    /** Returns the settings of a memtable of level {@code process}, which is flushed at 1 MiB. */
    static Settings settings(Path directory) {
        return new Settings(directory, Level.PROCESS, Settings.CommitLogUse.KEEP, 1 << 20);
    }
}

package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.wollemi.Database;
import io.github.wollemi.DurableMap;
import io.github.wollemi.Options;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.marshal.BytesType;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The headers of a pool. */
class SchemaTest {
    @BeforeAll
    static void configure() {
        DatabaseDescriptor.clientInitialization();
    }

    /** After a header that could not be stored, the one before it must not serve the table that was altered. */
    @Test
    void aHeaderIsMadeAgainIfItCouldNotBeStored() {
        TableMetadata table = TableMetadata.builder("ks", "t").partitioner(Murmur3Partitioner.instance)
                .addPartitionKeyColumn("k", Int32Type.instance).addRegularColumn("v", BytesType.instance).build();
        RegularAndStaticColumns columns = table.regularAndStaticColumns();
        try (Database database = Database.inMemory(Options.DEFAULT)) {
            DurableMap about = database.map("about");
            Schema schema = new Schema(about, TableMetadataRef.forOfflineTools(table));
            assertEquals(0, schema.covering(columns, EncodingStats.NO_STATS).number());
            schema.altered();
            assertEquals(1, schema.covering(columns, EncodingStats.NO_STATS).number());
            schema.altered();
            about.close();
            for (int attempt = 0; attempt < 2; attempt++) {
                assertThrows(IllegalStateException.class, () -> schema.covering(columns, EncodingStats.NO_STATS));
            }
        }
    }
}

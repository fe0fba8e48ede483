package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.wollemi.Level;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.BTreeRow;
import org.apache.cassandra.db.rows.BufferCell;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.index.transactions.UpdateTransaction;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Writes to a pool, without a node. */
class WriterTest {
    private static final TableMetadata TABLE = TableMetadata.builder("ks", "t").partitioner(Murmur3Partitioner.instance)
            .addPartitionKeyColumn("k", Int32Type.instance).addRegularColumn("v", Int32Type.instance).build();
    private static final TableMetadata ALTERED = TABLE.unbuild().addRegularColumn("w", Int32Type.instance).build();
    private static final DecoratedKey KEY = TABLE.partitioner.decorateKey(Int32Type.instance.decompose(1));

    @BeforeAll
    static void configure() {
        DatabaseDescriptor.clientInitialization();
    }

    private static Writer writer(Pool pool, TableMetadata table, String column) {
        ColumnMetadata changed = table.getColumn(ByteBuffer.wrap(column.getBytes()));
        Row.Builder row = BTreeRow.unsortedBuilder();
        row.newRow(Clustering.EMPTY);
        row.addCell(BufferCell.live(changed, 1, Int32Type.instance.decompose(7)));
        PartitionUpdate update = PartitionUpdate.singleRowUpdate(table, KEY, row.build());
        return new Writer(pool, update, UpdateTransaction.NO_OP, table);
    }

    /** The write that began first merges its row with one that has the new column. */
    @Test
    void aWriteMayOverlapWithTheFirstWriteOfANewColumn(@TempDir Path directory) {
        Settings settings = new Settings(directory, Level.PROCESS, Settings.CommitLogUse.KEEP, 1 << 20);
        try (Pool pool = Pool.open(directory.resolve("1.pool"), settings, TableMetadataRef.forOfflineTools(TABLE))) {
            writer(pool, TABLE, "v").write();
            Writer first = writer(pool, TABLE, "v");
            pool.schema().altered();
            writer(pool, ALTERED, "w").write();
            first.write();
            byte[] value = pool.rows().get(Keys.row(Keys.partition(KEY), TABLE.comparator, Clustering.EMPTY));
            assertEquals(2, Codec.row(ByteBuffer.wrap(value), pool.schema(), ALTERED).columnCount());
        }
    }
}

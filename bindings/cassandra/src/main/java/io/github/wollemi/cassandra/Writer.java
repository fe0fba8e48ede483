package io.github.wollemi.cassandra;

import io.github.wollemi.Batch;
import io.github.wollemi.Database;
import io.github.wollemi.DurableMap;
import io.github.wollemi.WollemiException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.ColumnData;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.index.transactions.UpdateTransaction;
import org.apache.cassandra.schema.TableMetadata;

/**
 * Merges one partition update into a pool: reads what the update touches, merges, and puts the result in one batch.
 *
 * <p>Indexes are notified of the change after it was made. So a failed change removes no acknowledged row from an
 * index. If an index fails, or the node is killed in between, the index lacks only a write that this node has not
 * acknowledged; repeating the write does not repair that.
 */
final class Writer implements ColumnData.PostReconciliationFunction {
    private final Pool pool;
    private final PartitionUpdate update;
    private final UpdateTransaction indexer;
    private final TableMetadata metadata;
    /** Chosen under the lock: then it has the columns of all rows that the update is merged with. */
    private Schema.Numbered schema;
    private final byte[] partition;
    /** Key and value, alternately. */
    private final List<byte[]> puts = new ArrayList<>();
    /** The pending notifications of the indexes. */
    private final List<Runnable> changes = new ArrayList<>();

    private long timeDelta = Long.MAX_VALUE;
    private long growth;

    Writer(Pool pool, PartitionUpdate update, UpdateTransaction indexer, TableMetadata metadata) {
        this.pool = pool;
        this.update = update;
        this.indexer = indexer;
        this.metadata = metadata;
        this.partition = Keys.partition(update.partitionKey());
    }

    /** Writes the update. */
    void write() {
        Stripes.Stripe stripe = pool.stripe(partition);
        stripe.lock();
        try {
            schema = pool.prepare(update);
            merge();
            stripe.change(this::put);
            tellIndexes();
        } catch (WollemiException failed) {
            throw MemtableFailure.of(pool, "writing to", failed);
        } finally {
            stripe.unlock();
        }
    }

    /** Returns the smallest difference between the timestamps of a cell and of the cell it has replaced. */
    long timeDelta() {
        return timeDelta;
    }

    /** Returns by how many bytes the pool's keys and values have grown. */
    long growth() {
        return growth;
    }

    private void merge() {
        if (!update.deletionInfo().isLive()) {
            mergeDeletion();
        }
        if (!update.staticRow().isEmpty()) {
            byte[] key = Keys.statics(partition);
            byte[] found = find(key);
            Row existing = found == null ? null : Codec.statics(ByteBuffer.wrap(found), pool.schema(), metadata);
            add(key, found, Codec.statics(merge(existing, update.staticRow()), schema));
        }
        for (Row row : update) {
            byte[] key = Keys.row(partition, metadata.comparator, row.clustering());
            byte[] found = find(key);
            Row existing = found == null ? null : Codec.row(ByteBuffer.wrap(found), pool.schema(), metadata);
            add(key, found, Codec.row(merge(existing, row), schema));
        }
    }

    private void mergeDeletion() {
        DeletionInfo deletion = update.deletionInfo();
        byte[] key = Keys.deletion(partition);
        byte[] found = find(key);
        DeletionInfo existing =
                found == null ? DeletionInfo.LIVE : Codec.deletion(ByteBuffer.wrap(found), pool.schema(), metadata);
        if (!deletion.mayModify(existing)) {
            return;
        }
        if (!deletion.getPartitionDeletion().isLive()) {
            changes.add(() -> indexer.onPartitionDeletion(deletion.getPartitionDeletion()));
        }
        changes.add(() -> deletion.rangeIterator(false).forEachRemaining(indexer::onRangeTombstone));
        add(key, found, Codec.deletion(existing.mutableCopy().add(deletion), schema));
    }

    private Row merge(Row existing, Row row) {
        if (existing == null || existing.isEmpty()) {
            changes.add(() -> indexer.onInserted(row));
            return row;
        }
        Row merged = Rows.merge(existing, row, this);
        changes.add(() -> indexer.onUpdated(existing, merged));
        return merged;
    }

    /** Returns the value of a key, or null; refuses a key that no pool can have. */
    private byte[] find(byte[] key) {
        if (key.length > Database.maxKey()) {
            throw MemtableFailure.refusal("a row of " + metadata + " has a key of " + key.length
                    + " bytes in byte-comparable form (partition and clustering): a wollemi memtable takes at most "
                    + Database.maxKey());
        }
        return pool.rows().get(key);
    }

    private void add(byte[] key, byte[] found, byte[] value) {
        if (value.length > Database.maxValue()) {
            throw MemtableFailure.refusal("a row of " + metadata + " has " + value.length
                    + " bytes with this write: a wollemi memtable takes at most " + Database.maxValue());
        }
        puts.add(key);
        puts.add(value);
        growth += value.length - (found == null ? -key.length : found.length);
    }

    private void tellIndexes() {
        indexer.start();
        try {
            changes.forEach(Runnable::run);
        } finally {
            indexer.commit();
        }
    }

    private void put() {
        DurableMap rows = pool.rows();
        if (puts.size() == 2) {
            rows.put(puts.get(0), puts.get(1));
            return;
        }
        if (!puts.isEmpty()) {
            Batch batch = pool.database().batch();
            for (int i = 0; i < puts.size(); i += 2) {
                batch.put(rows, puts.get(i), puts.get(i + 1));
            }
            batch.commit();
        }
    }

    @Override
    public ColumnData insert(ColumnData insert) {
        return insert;
    }

    @Override
    public Cell<?> merge(Cell<?> previous, Cell<?> insert) {
        if (insert != previous) {
            timeDelta = Math.min(timeDelta, Math.abs(insert.timestamp() - previous.timestamp()));
        }
        return insert;
    }

    @Override
    public void delete(ColumnData existing) {
        // Sizes are counted when the row is encoded.
    }

    @Override
    public void onAllocatedOnHeap(long delta) {
        // Nothing is kept on the heap.
    }
}

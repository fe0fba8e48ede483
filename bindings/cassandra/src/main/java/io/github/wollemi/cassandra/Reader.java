package io.github.wollemi.cassandra;

import io.github.wollemi.Cursor;
import io.github.wollemi.ReadableMap;
import io.github.wollemi.Snapshot;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;

/**
 * Reads what is selected of one partition, as it is at one moment.
 *
 * <p>Few rows are taken at once, and taken again if a writer has changed the partition meanwhile. For more there is a
 * snapshot of the pool, from which they are taken as they are asked for.
 */
final class Reader {
    /** So many rows are taken at once. */
    private static final int FEW = 128;
    private static final int TRIES = 4;

    private final Pool pool;
    private final Selection selection;
    private final byte[] partition;

    Reader(Pool pool, Selection selection, byte[] partition) {
        this.pool = pool;
        this.selection = selection;
        this.partition = partition;
    }

    /** Whether a pool has anything of a partition. */
    static boolean holds(Pool pool, byte[] partition) {
        return pool.rows().tailMap(partition, true).headMap(Keys.behind(partition), false).firstEntry() != null;
    }

    /** The answer, or null if there is nothing. */
    UnfilteredRowIterator read() {
        Stripes.Stripe stripe = pool.stripe(partition);
        for (int tries = 0; tries < TRIES; tries++) {
            long before = stripe.changes();
            if ((before & 1) != 0) {
                Thread.onSpinWait();
                continue;
            }
            Heads heads = heads(pool.rows());
            Map<Slice, List<ByteBuffer>> few = few();
            if (few == null) {
                break;
            }
            if (stripe.changes() == before) {
                return answer(heads, few);
            }
        }
        return readSnapshot();
    }

    private Heads heads(ReadableMap view) {
        return Heads.read(view, pool, partition, selection.filter(), selection.metadata());
    }

    /** The values of the rows of each slice, or null if they are not few. */
    private Map<Slice, List<ByteBuffer>> few() {
        Map<Slice, List<ByteBuffer>> all = new IdentityHashMap<>();
        int room = FEW;
        for (Slice slice : selection.slices()) {
            List<ByteBuffer> values = new ArrayList<>();
            for (Iterator<ByteBuffer> rows = values(pool.rows(), slice); rows.hasNext(); room--) {
                if (room == 0) {
                    return null;
                }
                values.add(rows.next());
            }
            all.put(slice, values);
        }
        return all;
    }

    private UnfilteredRowIterator answer(Heads heads, Map<Slice, List<ByteBuffer>> few) {
        if (heads.isEmpty() && few.values().stream().allMatch(List::isEmpty)) {
            return null;
        }
        return selection.answer(heads, slice -> rows(few.get(slice).iterator()), () -> {});
    }

    private UnfilteredRowIterator readSnapshot() {
        Snapshot snapshot = pool.database().snapshot();
        try {
            return readView(snapshot.map(pool.rows()), snapshot::close);
        } catch (RuntimeException failed) {
            snapshot.close();
            throw failed;
        }
    }

    /** Reads a view in which nothing changes, or in which changes do not matter. */
    UnfilteredRowIterator readView(ReadableMap view, Runnable close) {
        return selection.answer(heads(view), slice -> rows(values(view, slice)), close);
    }

    private Iterator<Row> rows(Iterator<ByteBuffer> values) {
        return new Values(values, pool.schema(), selection.metadata());
    }

    private Iterator<ByteBuffer> values(ReadableMap view, Slice slice) {
        byte[] point = selection.point(partition, slice);
        if (point != null) {
            byte[] value = view.get(point);
            return value == null ? Collections.emptyIterator() : List.of(ByteBuffer.wrap(value)).iterator();
        }
        var comparator = selection.metadata().comparator;
        ReadableMap part = view
                .tailMap(Keys.row(partition, comparator, slice.start()), true)
                .headMap(Keys.row(partition, comparator, slice.end()), true);
        Cursor cursor = (selection.reversed() ? part.descendingMap() : part).cursor();
        return Values.of(cursor);
    }
}

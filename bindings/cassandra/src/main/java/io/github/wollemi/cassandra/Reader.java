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
 * Reads the selected parts of one partition, as of one moment.
 *
 * <p>A small number of rows is read at once, and again if a writer changes the partition meanwhile. If that happens
 * repeatedly, or if there are more rows, they are read on demand from a snapshot of the pool.
 */
final class Reader {
    /** Maximum number of rows read at once. */
    private static final int MAX_AT_ONCE = 128;
    private static final int TRIES = 4;

    private final Pool pool;
    private final Selection selection;
    private final byte[] partition;

    Reader(Pool pool, Selection selection, byte[] partition) {
        this.pool = pool;
        this.selection = selection;
        this.partition = partition;
    }

    /** Returns whether a pool has anything of a partition. */
    static boolean holds(Pool pool, byte[] partition) {
        return Keys.fits(partition)
                && pool.rows().tailMap(partition, true).headMap(Keys.behind(partition), false).firstEntry() != null;
    }

    /** Returns the selected parts, or null if there are none. */
    UnfilteredRowIterator read() {
        if (!Keys.fits(partition)) {
            return null;
        }
        Stripes.Stripe stripe = pool.stripe(partition);
        for (int tries = 0; tries < TRIES; tries++) {
            long before = stripe.changes();
            if ((before & 1) != 0) {
                Thread.onSpinWait();
                continue;
            }
            Heads heads = heads(pool.rows());
            Map<Slice, List<ByteBuffer>> few = readAtOnce();
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

    /** Returns the values of the rows of each slice, or null if there are too many. */
    private Map<Slice, List<ByteBuffer>> readAtOnce() {
        Map<Slice, List<ByteBuffer>> all = new IdentityHashMap<>();
        int room = MAX_AT_ONCE;
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

    /** Reads a snapshot's view, or a map that is no longer written. */
    UnfilteredRowIterator readView(ReadableMap view, Runnable close) {
        return selection.answer(heads(view), slice -> rows(values(view, slice)), close);
    }

    private Iterator<Row> rows(Iterator<ByteBuffer> values) {
        return new Values(values, pool.schema(), selection.metadata());
    }

    private Iterator<ByteBuffer> values(ReadableMap view, Slice slice) {
        byte[] point = selection.point(partition, slice);
        if (point != null) {
            byte[] value = Keys.find(view, point);
            return value == null ? Collections.emptyIterator() : List.of(ByteBuffer.wrap(value)).iterator();
        }
        var comparator = selection.metadata().comparator;
        ReadableMap part = view
                .tailMap(Keys.bound(partition, comparator, slice.start()), true)
                .headMap(Keys.bound(partition, comparator, slice.end()), true);
        Cursor cursor = (selection.reversed() ? part.descendingMap() : part).cursor();
        return Values.of(cursor);
    }
}

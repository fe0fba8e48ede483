package io.github.wollemi.cassandra;

import java.util.Iterator;
import java.util.function.Function;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.rows.AbstractUnfilteredRowIterator;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;

/** The selected parts of a partition, slice by slice. */
final class Answer extends AbstractUnfilteredRowIterator {
    private final Selection selection;
    private final Heads heads;
    private final Function<Slice, Iterator<Row>> rows;
    private final Runnable close;

    private int next;
    private UnfilteredRowIterator slice;

    Answer(Selection selection, Heads heads, Function<Slice, Iterator<Row>> rows, Runnable close) {
        super(selection.metadata(), selection.key(), heads.deletion().getPartitionDeletion(),
                selection.filter().fetchedColumns(), heads.statics(selection.filter(), selection.metadata()),
                selection.reversed(), selection.stats());
        this.selection = selection;
        this.heads = heads;
        this.rows = rows;
        this.close = close;
    }

    @Override
    protected Unfiltered computeNext() {
        while (true) {
            if (slice != null && slice.hasNext()) {
                return slice.next();
            }
            if (next == selection.slices().size()) {
                return endOfData();
            }
            Slice following = selection.slice(next++);
            slice = selection.slice(heads, following, rows.apply(following));
        }
    }

    @Override
    public void close() {
        close.run();
    }
}

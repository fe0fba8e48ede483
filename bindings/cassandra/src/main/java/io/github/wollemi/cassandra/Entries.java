package io.github.wollemi.cassandra;

import io.github.wollemi.Cursor;
import io.github.wollemi.ReadableMap;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.function.BooleanSupplier;
import org.apache.cassandra.utils.AbstractIterator;

/** Iterates over the entries of a view, with a look at the next one. */
final class Entries {
    /** After skipping this many entries, seeks the end of the partition instead. */
    private static final int MAX_SKIPPED = 32;

    private final ReadableMap view;
    private Cursor cursor;
    private boolean present;

    Entries(ReadableMap view) {
        this.view = view;
        this.cursor = view.cursor();
        this.present = cursor.advance();
    }

    /** Returns whether there is a next entry. */
    boolean present() {
        return present;
    }

    /** Returns whether there is a next entry that belongs to a partition. */
    boolean in(byte[] partition) {
        return present && Keys.belongs(cursor.key(), partition);
    }

    ByteBuffer key() {
        return cursor.key();
    }

    ByteBuffer value() {
        return Values.writable(cursor.value());
    }

    void advance() {
        present = cursor.advance();
    }

    /** Skips to the entry after a partition. */
    void skip(byte[] partition) {
        for (int skipped = 0; in(partition); skipped++) {
            if (skipped == MAX_SKIPPED) {
                cursor = view.tailMap(Keys.behind(partition), true).cursor();
            }
            advance();
        }
    }

    /** Returns the values of a partition, while that is allowed. */
    Iterator<ByteBuffer> take(byte[] partition, BooleanSupplier allowed) {
        return new AbstractIterator<>() {
            @Override
            protected ByteBuffer computeNext() {
                if (!allowed.getAsBoolean()) {
                    throw new IllegalStateException("the rows of a partition must be read before the next partition is requested");
                }
                if (!in(partition)) {
                    return endOfData();
                }
                ByteBuffer value = value();
                advance();
                return value;
            }
        };
    }
}

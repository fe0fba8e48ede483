package io.github.wollemi.cassandra;

import io.github.wollemi.Cursor;
import io.github.wollemi.ReadableMap;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.function.BooleanSupplier;
import org.apache.cassandra.utils.AbstractIterator;

/** Goes through the entries of a view and can see the next one before it is taken. */
final class Entries {
    /** Skipping more entries than this looks for the end of the partition instead. */
    private static final int FEW = 32;

    private final ReadableMap view;
    private Cursor cursor;
    private boolean present;

    Entries(ReadableMap view) {
        this.view = view;
        this.cursor = view.cursor();
        this.present = cursor.advance();
    }

    /** Whether there is a next entry. */
    boolean present() {
        return present;
    }

    /** Whether there is a next entry, and it is one of a partition. */
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

    /** Goes behind a partition. */
    void skip(byte[] partition) {
        for (int skipped = 0; in(partition); skipped++) {
            if (skipped == FEW) {
                cursor = view.tailMap(Keys.behind(partition), true).cursor();
            }
            advance();
        }
    }

    /** Takes the values of a partition, while that is allowed. */
    Iterator<ByteBuffer> take(byte[] partition, BooleanSupplier allowed) {
        return new AbstractIterator<>() {
            @Override
            protected ByteBuffer computeNext() {
                if (!allowed.getAsBoolean()) {
                    throw new IllegalStateException("the rows of a partition are read after the next partition is asked for");
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

package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.wollemi.Batch;
import io.github.wollemi.Cursor;
import io.github.wollemi.Database;
import io.github.wollemi.DurableMap;
import io.github.wollemi.Options;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.IntConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What a row costs in a pool as one value, as the memtable stores it, and with a key for each cell, in single-row
 * partitions and in wide ones. A measurement, not a test: {@code ./test.sh -Dtest=LayoutFigures}. There is no node, and
 * nothing is encoded as Cassandra does.
 *
 * <p>Settings: {@code WOLLEMI_ROWS}; {@code WOLLEMI_COLUMNS} of a row; {@code WOLLEMI_CELL}, the bytes of a cell;
 * {@code WOLLEMI_ROUNDS}.
 */
class LayoutFigures {
    /** The rows of a wide partition. */
    private static final int WIDE = 100;
    /** The length of a row's key. */
    private static final int ROW_KEY = Long.BYTES + Integer.BYTES;

    /** How a row is stored. */
    private enum Layout {
        /** One key with all cells. */
        ROW,
        /** A key for each cell. */
        CELLS
    }

    @TempDir
    Path folder;

    private final int rows = Figures.setting("WOLLEMI_ROWS", 100_000);
    private final int columns = Figures.setting("WOLLEMI_COLUMNS", 10);
    private final int cell = Figures.setting("WOLLEMI_CELL", 100);
    private final int rounds = Figures.setting("WOLLEMI_ROUNDS", 3);
    private final Random random = new Random(1);

    @Test
    void measure() {
        List<List<String>> table = new ArrayList<>();
        for (int wide : new int[] {1, WIDE}) {
            List<List<double[]>> measured = List.of(new ArrayList<>(), new ArrayList<>());
            for (int round = 0; round <= rounds; round++) {
                for (Layout layout : Layout.values()) {
                    double[] one = round(layout, wide, folder.resolve(layout + "-" + wide + "-" + round));
                    // The first round warms up.
                    if (round > 0) {
                        measured.get(layout.ordinal()).add(one);
                    }
                }
            }
            for (Layout layout : Layout.values()) {
                List<String> line = new ArrayList<>(List.of(layout + ", partitions of " + wide));
                for (int i = 0; i < 5; i++) {
                    int which = i;
                    line.add(Figures.spread(i == 4 ? "%.0f" : "%.2f",
                            measured.get(layout.ordinal()).stream().map(one -> one[which]).toList()));
                }
                table.add(line);
            }
        }
        System.out.printf("layout: %d rows of %d cells of %d bytes; %d rounds; µs%n%n", rows, columns, cell, rounds);
        Figures.print(List.of("", "write a row", "replace one cell", "read a row", "read a partition",
                "bytes of the pool per row"), table);
    }

    /** Returns the microseconds of each operation, and the bytes per row. */
    private double[] round(Layout layout, int wide, Path pool) {
        try (Database db = Database.open(pool, Options.DEFAULT.maxSize(8L << 30))) {
            DurableMap map = db.map("m");
            double write = micros(rows, row -> write(db, map, layout, key(row, wide)));
            double replace = micros(rows, row -> replace(db, map, layout, key(random.nextInt(rows), wide)));
            double read = micros(rows, row -> read(map, layout, key(random.nextInt(rows), wide), 1));
            int partitions = rows / wide;
            double scan = micros(partitions, partition -> {
                byte[] key = key(random.nextInt(partitions) * wide, wide);
                read(map, layout, Arrays.copyOf(key, Long.BYTES), wide);
            });
            double bytes = db.stats().used() / (double) rows;
            // The file goes, so it need not be written.
            db.abandon();
            return new double[] {write, replace, read, scan, bytes};
        } finally {
            pool.toFile().delete();
        }
    }

    private static double micros(int times, IntConsumer operation) {
        long began = System.nanoTime();
        for (int i = 0; i < times; i++) {
            operation.accept(i);
        }
        return Figures.seconds(began) * 1e6 / times;
    }

    /** Returns a row's key: its partition's token, and its place there. */
    private static byte[] key(int row, int wide) {
        long token = (row / wide + 1L) * 0x9e3779b97f4a7c15L;
        return ByteBuffer.allocate(ROW_KEY).putLong(token).putInt(row % wide).array();
    }

    private static byte[] column(byte[] key, int column) {
        byte[] extended = Arrays.copyOf(key, key.length + 1);
        extended[key.length] = (byte) column;
        return extended;
    }

    private void write(Database db, DurableMap map, Layout layout, byte[] key) {
        Batch batch = db.batch();
        if (layout == Layout.ROW) {
            batch.put(map, key, new byte[columns * cell]);
        } else {
            for (int i = 0; i < columns; i++) {
                batch.put(map, column(key, i), new byte[cell]);
            }
        }
        batch.commit();
    }

    private void replace(Database db, DurableMap map, Layout layout, byte[] key) {
        Batch batch = db.batch();
        if (layout == Layout.ROW) {
            byte[] row = map.get(key);
            row[cell] = 1;
            batch.put(map, key, row);
        } else {
            batch.put(map, column(key, 1), new byte[cell]);
        }
        batch.commit();
    }

    /** Reads the rows that begin with a key. */
    private void read(DurableMap map, Layout layout, byte[] prefix, int count) {
        if (layout == Layout.ROW && prefix.length == ROW_KEY) {
            assertEquals(columns * cell, map.get(prefix).length);
            return;
        }
        int bytes = 0;
        Cursor cursor = map.prefixMap(prefix).cursor();
        while (cursor.advance()) {
            bytes += cursor.value().remaining();
        }
        assertEquals(count * columns * cell, bytes);
    }
}

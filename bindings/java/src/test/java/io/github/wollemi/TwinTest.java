package io.github.wollemi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Random calls on a map and on a {@link TreeMap} give the same results, with reopenings in between. */
class TwinTest {
    private static final int CALLS = 12_000;

    @TempDir
    Path folder;

    private Random random;
    private Database db;
    private DurableMap map;
    private TreeMap<byte[], byte[]> model = newModel();
    /** A snapshot and its expected content, or none. */
    private Snapshot snapshot;
    private List<Entry> then;

    private static TreeMap<byte[], byte[]> newModel() {
        return new TreeMap<>(Arrays::compareUnsigned);
    }

    @Test
    void roartAtLevelProcess() {
        run("roart at level process", Options.DEFAULT.maxSize(1L << 30));
    }

    @Test
    void roartAtLevelDisk() {
        run("roart at level disk",
                Options.DEFAULT.maxSize(1L << 30).level(Level.DISK).durability(Durability.EVENTUAL));
    }

    @Test
    void anotherIndex() {
        List<String> ordered = new ArrayList<>(Database.indexes());
        ordered.removeAll(List.of("roart", "clht"));
        Random draw = new Random(Bytes.seed("TwinTest, which index"));
        String index = ordered.get(draw.nextInt(ordered.size()));
        run(index, Options.DEFAULT.maxSize(1L << 30).index(index));
    }

    private void run(String what, Options options) {
        random = new Random(Bytes.seed("TwinTest, " + what));
        Path pool = folder.resolve("twin.pool");
        open(pool, options);
        for (int call = 0; call < CALLS; call++) {
            step(map);
            if (random.nextInt(40) == 0) {
                transact();
            }
            if (random.nextInt(100) == 0) {
                batch();
            }
            if (random.nextInt(300) == 0) {
                snapshot();
            }
            if (random.nextInt(1500) == 0) {
                db.close();
                open(pool, options);
            }
        }
        assertEquals(entries(model), map.stream().toList());
        db.close();
        open(pool, options);
        assertEquals(entries(model), map.stream().toList());
        Check check = db.check();
        assertTrue(check.isClean(), check.faults().toString());
        db.close();
    }

    private void open(Path pool, Options options) {
        snapshot = null;
        db = Database.open(pool, options);
        map = db.map("twin");
    }

    private byte[] key() {
        byte[] key = new byte[random.nextInt(random.nextInt(8) == 0 ? 40 : 4)];
        for (int i = 0; i < key.length; i++) {
            key[i] = (byte) new int[] {0, 'a', 'b', 'c', 0x7f, 0x80, 0xff}[random.nextInt(7)];
        }
        return key;
    }

    private byte[] value() {
        byte[] value = new byte[new int[] {0, 3, 8, 8, 8, 100, 5000}[random.nextInt(7)]];
        random.nextBytes(value);
        return value;
    }

    private ByteBuffer buffer(byte[] bytes) {
        int before = random.nextInt(5);
        int room = before + bytes.length + random.nextInt(5);
        ByteBuffer buffer = random.nextBoolean() ? ByteBuffer.allocateDirect(room) : ByteBuffer.allocate(room);
        return buffer.position(before).put(bytes).flip().position(before);
    }

    /** Runs one call on a map and the model. */
    private void step(WritableMap map) {
        byte[] key = key();
        byte[] value = value();
        byte[] held = model.get(key);
        switch (random.nextInt(13)) {
            case 0, 1 -> {
                map.put(key, value);
                model.put(key, value);
            }
            case 2 -> {
                map.put(buffer(key), buffer(value));
                model.put(key, value);
            }
            case 3 -> assertEquals(model.putIfAbsent(key, value) == null, map.putIfAbsent(key, value));
            case 4 -> assertEquals(model.replace(key, value) != null, map.replace(key, value));
            case 5, 6 -> assertEquals(model.remove(key) != null, map.remove(key));
            case 7 -> {
                byte[] expected = random.nextBoolean() ? held : value();
                byte[] next = random.nextBoolean() ? value : null;
                boolean isSo = Arrays.equals(held, expected);
                assertEquals(isSo, map.compareAndSet(key, expected, next));
                if (isSo && next != null) {
                    model.put(key, next);
                } else if (isSo) {
                    model.remove(key);
                }
            }
            case 8 -> {
                assertArrayEquals(held, map.get(key));
                assertEquals(held != null, map.containsKey(key));
            }
            case 9 -> {
                ByteBuffer into = random.nextBoolean() ? ByteBuffer.allocateDirect(200) : ByteBuffer.allocate(200);
                into.position(7);
                assertEquals(held == null ? -1 : held.length, map.get(buffer(key), into));
                byte[] copied = Arrays.copyOfRange(held == null ? new byte[0] : held, 0, into.position() - 7);
                assertEquals(ByteBuffer.wrap(copied), into.flip().position(7));
                assertTrue(copied.length > 0 || held == null || held.length == 0 || held.length > 193);
            }
            case 10 -> {
                List<byte[]> keys = new ArrayList<>();
                for (int i = random.nextInt(20); i > 0; i--) {
                    keys.add(key());
                }
                List<byte[]> values = map.multiGet(keys);
                for (int i = 0; i < keys.size(); i++) {
                    assertArrayEquals(model.get(keys.get(i)), values.get(i));
                }
            }
            default -> view(map, entries(model));
        }
    }

    private static List<Entry> entries(TreeMap<byte[], byte[]> model) {
        List<Entry> entries = new ArrayList<>();
        model.forEach((key, value) -> entries.add(new Entry(key, value)));
        return entries;
    }

    /** A random view has the expected entries and neighbours of a key. */
    private void view(ReadableMap whole, List<Entry> entries) {
        ReadableMap view = whole;
        List<Entry> expected = new ArrayList<>(entries);
        boolean down = false;
        for (int i = random.nextInt(4); i > 0; i--) {
            byte[] at = key();
            boolean inclusive = random.nextBoolean();
            boolean above;
            switch (random.nextInt(4)) {
                case 0 -> {
                    view = view.descendingMap();
                    Collections.reverse(expected);
                    down = !down;
                    continue;
                }
                case 1 -> {
                    view = view.prefixMap(at);
                    expected.removeIf(entry -> entry.key().length < at.length
                            || !Arrays.equals(entry.key(), 0, at.length, at, 0, at.length));
                    continue;
                }
                case 2 -> {
                    view = view.headMap(at, inclusive);
                    above = down;
                }
                default -> {
                    view = view.tailMap(at, inclusive);
                    above = !down;
                }
            }
            Predicate<Entry> inside = entry -> {
                int order = Arrays.compareUnsigned(entry.key(), at);
                return order == 0 ? inclusive : above == order > 0;
            };
            expected.removeIf(inside.negate());
        }
        assertEquals(expected, view.stream().toList());
        assertEquals(expected.size(), view.count());
        assertEquals(expected.isEmpty(), view.isEmpty());
        assertEquals(expected.isEmpty() ? null : expected.get(0), view.firstEntry());
        assertEquals(expected.isEmpty() ? null : expected.get(expected.size() - 1), view.lastEntry());

        byte[] at = key();
        int sign = down ? -1 : 1;
        Entry[] neighbours = new Entry[4];
        for (Entry entry : expected) {
            int order = sign * Arrays.compareUnsigned(entry.key(), at);
            neighbours[0] = order < 0 ? entry : neighbours[0];
            neighbours[1] = order <= 0 ? entry : neighbours[1];
            neighbours[2] = order >= 0 && neighbours[2] == null ? entry : neighbours[2];
            neighbours[3] = order > 0 && neighbours[3] == null ? entry : neighbours[3];
        }
        assertEquals(neighbours[0], view.lowerEntry(at));
        assertEquals(neighbours[1], view.floorEntry(at));
        assertEquals(neighbours[2], view.ceilingEntry(at));
        assertEquals(neighbours[3], view.higherEntry(at));
    }

    /** Runs the same calls in a transaction, which sees its own changes, and is committed or not. */
    private void transact() {
        TreeMap<byte[], byte[]> before = newModel();
        before.putAll(model);
        try (Transaction transaction = db.begin()) {
            WritableMap seen = transaction.map(map);
            for (int i = random.nextInt(10); i > 0; i--) {
                step(seen);
            }
            if (random.nextInt(3) > 0) {
                transaction.commit();
            } else {
                model = before;
            }
        }
    }

    private void batch() {
        Batch batch = db.batch();
        TreeMap<byte[], byte[]> after = newModel();
        after.putAll(model);
        boolean isSo = true;
        for (int i = random.nextInt(20); i > 0; i--) {
            byte[] key = key();
            switch (random.nextInt(8)) {
                case 0 -> {
                    byte[] expected = random.nextInt(10) == 0 ? value() : model.get(key);
                    isSo &= Arrays.equals(model.get(key), expected);
                    batch.expect(map, key, expected);
                }
                case 1, 2 -> {
                    batch.remove(map, key);
                    after.remove(key);
                }
                default -> {
                    byte[] value = value();
                    batch.put(map, key, value);
                    after.put(key, value);
                }
            }
        }
        assertEquals(isSo, batch.commit());
        model = isSo ? after : model;
    }

    /** A snapshot shows the content of its moment. */
    private void snapshot() {
        if (snapshot == null) {
            snapshot = db.snapshot();
            then = entries(model);
            return;
        }
        for (int i = 0; i < 5; i++) {
            view(snapshot.map(map), then);
        }
        snapshot.close();
        snapshot = null;
    }
}

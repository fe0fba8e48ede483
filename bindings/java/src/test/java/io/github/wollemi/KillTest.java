package io.github.wollemi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A child JVM is killed ({@code kill -9}) while its threads write; then every acknowledged write is present, removed
 * entries are absent, and each call in progress has happened as a whole or not at all.
 */
class KillTest {
    private static final int WRITERS = 3;
    private static final int KILLS = 5;

    @TempDir
    Path folder;

    /**
     * The child. Its arguments are the pool, the level, and the number of each thread's first call. It writes a line
     * for each call that has returned: the thread and the call's number.
     */
    public static final class Writers {
        public static void main(String[] args) {
            Database db = Database.open(Path.of(args[0]), Options.DEFAULT.level(Level.valueOf(args[1])));
            FileOutputStream out = new FileOutputStream(FileDescriptor.out);
            for (int i = 0; i <= WRITERS; i++) {
                int thread = i;
                long first = Long.parseLong(args[2 + i]);
                new Thread(() -> {
                    DurableMap map = db.map("writer " + thread);
                    DurableMap other = db.map("other");
                    for (long call = first;; call++) {
                        if (thread < WRITERS) {
                            write(map, call);
                        } else {
                            transact(db, map, other, call);
                        }
                        try {
                            out.write((thread + " " + call + "\n").getBytes());
                        } catch (IOException gone) {
                            return;
                        }
                    }
                }).start();
            }
        }
    }

    private static byte[] value(long call) {
        byte[] value = new byte[new int[] {8, 8, 30, 700}[(int) (call % 4)]];
        Arrays.fill(value, (byte) call);
        return value;
    }

    /** Returns the key that a call changes. */
    private static byte[] key(long call) {
        return Bytes.of(Long.rotateLeft((call % 4 == 3 ? call - 2 : call) * 0x9e3779b97f4a7c15L, 17));
    }

    private static void write(WritableMap map, long call) {
        if (call % 4 == 3) {
            require(map.remove(key(call)));
        } else {
            map.put(key(call), value(call));
        }
    }

    /** An assertion for the child, which has no JUnit. */
    private static void require(boolean isSo) {
        if (!isSo) {
            System.err.println("the child has read an impossible value");
            Runtime.getRuntime().halt(1);
        }
    }

    /** Checks that two maps have the same number, and sets a new one in both. */
    private static void transact(Database db, DurableMap map, DurableMap other, long call) {
        db.transact(tx -> {
            require(Arrays.equals(tx.map(map).get(Bytes.of(0)), tx.map(other).get(Bytes.of(0))));
            tx.map(map).put(Bytes.of(0), Bytes.of(call));
            tx.map(other).put(Bytes.of(0), Bytes.of(call));
            return null;
        });
    }

    @Test
    void atLevelProcess() throws Exception {
        run(Level.PROCESS);
    }

    @Test
    void atLevelDisk() throws Exception {
        run(Level.DISK);
    }

    private void run(Level level) throws Exception {
        Random random = new Random(Bytes.seed("KillTest, " + level));
        Path pool = folder.resolve("kill.pool");
        long[] next = new long[WRITERS + 1];
        List<TreeMap<byte[], byte[]>> models = new ArrayList<>();
        for (int i = 0; i < WRITERS; i++) {
            models.add(new TreeMap<>(Arrays::compareUnsigned));
        }
        for (int kill = 0; kill < KILLS; kill++) {
            long[] acknowledged = kill(pool, level, next, 50 + random.nextInt(level == Level.DISK ? 500 : 5000));
            try (Database db = Database.open(pool)) {
                assertEquals("process crash", db.stats().lastShutdown());
                for (int i = 0; i < WRITERS; i++) {
                    next[i] = verify(db.map("writer " + i), models.get(i), next[i], acknowledged[i]);
                }
                byte[] one = db.map("writer " + WRITERS).get(Bytes.of(0));
                assertArrayEquals(one, db.map("other").get(Bytes.of(0)), "a transaction in part");
                if (acknowledged[WRITERS] >= 0) {
                    assertNotNull(one);
                    long call = Bytes.number(one);
                    assertTrue(call == acknowledged[WRITERS] || call == acknowledged[WRITERS] + 1,
                            call + " is there, and " + acknowledged[WRITERS] + " was acknowledged");
                    next[WRITERS] = call + 1;
                } else if (one != null) {
                    next[WRITERS] = Bytes.number(one) + 1;
                }
                Check check = db.check();
                assertTrue(check.isClean(), check.faults().toString());
            }
        }
    }

    /**
     * Runs the child until it has reported this many calls, kills it, and returns the last call of each thread; -1:
     * none.
     */
    private long[] kill(Path pool, Level level, long[] first, int calls) throws Exception {
        List<String> arguments = new ArrayList<>(List.of(Writers.class.getName(), pool.toString(), level.name()));
        for (long call : first) {
            arguments.add(Long.toString(call));
        }
        Process child = Child.java(folder, arguments).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        long[] last = new long[first.length];
        Arrays.fill(last, -1);
        try (BufferedReader lines = child.inputReader()) {
            int told = 0;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                last[Integer.parseInt(words[0])] = Long.parseLong(words[1]);
                if (++told == calls) {
                    // By its handle, which leaves the pipe open: the child's reports are read to the end.
                    child.toHandle().destroyForcibly();
                }
            }
            assertTrue(told >= calls, "the child has ended by itself");
        } finally {
            child.destroyForcibly();
        }
        child.waitFor();
        return last;
    }

    /** Compares a map with its thread's acknowledged calls; returns the number of the next call. */
    private static long verify(DurableMap map, TreeMap<byte[], byte[]> model, long first, long last) {
        for (long call = first; call <= last; call++) {
            apply(model, call);
        }
        // The call in progress may have happened, as a whole.
        long next = Math.max(first, last + 1);
        byte[] found = map.get(key(next));
        if (!Arrays.equals(found, model.get(key(next)))) {
            apply(model, next);
            next++;
        }
        var expected = model.entrySet().iterator();
        for (Entry entry : map) {
            assertTrue(expected.hasNext(), "an unexpected key: " + entry);
            var one = expected.next();
            assertEquals(new Entry(one.getKey(), one.getValue()), entry);
        }
        assertTrue(!expected.hasNext(), () -> "lost: " + expected.next().getKey().length);
        return next;
    }

    private static void apply(TreeMap<byte[], byte[]> model, long call) {
        if (call % 4 == 3) {
            assertNotNull(model.remove(key(call)));
        } else {
            assertNull(model.put(key(call), value(call)));
        }
    }
}

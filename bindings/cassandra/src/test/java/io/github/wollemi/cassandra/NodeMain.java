package io.github.wollemi.cassandra;

import com.google.common.util.concurrent.Uninterruptibles;
import io.github.wollemi.Leaks;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.SystemKeyspace;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.marshal.UTF8Type;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.gms.Gossiper;
import org.apache.cassandra.metrics.HintsServiceMetrics;
import org.apache.cassandra.repair.messages.RepairOption;
import org.apache.cassandra.service.CassandraDaemon;
import org.apache.cassandra.service.StorageProxy;
import org.apache.cassandra.service.StorageService;
import org.apache.cassandra.utils.concurrent.OpOrder;
import org.apache.cassandra.utils.progress.ProgressEventType;

/**
 * A Cassandra node as a separate process. It reads commands from its input, one per line, answers each with a line, and
 * ends when its input does, so no node outlives the test that started it.
 */
public final class NodeMain {
    private static final int LOOKS = 20;
    /** In minutes. */
    private static final int MAX_REPAIR = 5;

    private static volatile CountDownLatch released = new CountDownLatch(0);
    /** A memtable that a caller holds longer than the table does. */
    private static volatile Memtable kept;

    private NodeMain() {}

    /** Starts the node that the system properties configure. */
    public static void main(String[] arguments) throws IOException {
        // The node's own output must not be mistaken for an answer.
        PrintStream out = System.out;
        System.setOut(System.err);
        CassandraDaemon daemon = new CassandraDaemon(true);
        try {
            daemon.activate();
        } catch (Throwable failed) {
            failed.printStackTrace();
            Runtime.getRuntime().halt(3);
        }
        out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split(" ");
            if (words[0].equals("stop")) {
                daemon.deactivate();
                out.println("done");
                Runtime.getRuntime().halt(0);
            }
            try {
                out.println("done " + run(words));
            } catch (Throwable failed) {
                failed.printStackTrace();
                out.println("failed " + failed);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static String run(String[] words) throws Exception {
        switch (words[0]) {
            case "hold" -> {
                return hold();
            }
            case "release" -> {
                released.countDown();
                return "";
            }
            case "live" -> {
                return String.valueOf(Gossiper.instance.getLiveMembers().size());
            }
            case "hints" -> {
                StorageProxy.instance.setHintedHandoffEnabled(words[1].equals("on"));
                return "";
            }
            case "delivered" -> {
                return String.valueOf(HintsServiceMetrics.hintsSucceeded.getCount());
            }
            case "repair" -> {
                return repair(words[1]);
            }
            case "drain" -> {
                StorageService.instance.drain();
                return "";
            }
            default -> {
                return run(words[0], words);
            }
        }
    }

    private static String run(String command, String[] words) throws Exception {
        ColumnFamilyStore table = Keyspace.open(words[1]).getColumnFamilyStore(words[2]);
        switch (command) {
            case "flush" -> table.forceBlockingFlush(ColumnFamilyStore.FlushReason.USER_FORCED);
            case "compact" -> table.forceMajorCompaction();
            case "sstables" -> {
                return String.valueOf(table.getLiveSSTables().size());
            }
            case "memtable" -> {
                var memtable = table.getCurrentMemtable();
                return memtable.getClass().getSimpleName() + " " + memtable.partitionCount();
            }
            case "fill" -> NodeFigures.fill(table, Integer.parseInt(words[3]));
            case "memory" -> {
                return NodeFigures.memory(table);
            }
            case "break" -> close(table.getCurrentMemtable(), "pools", "active", "meta");
            case "truncated" -> {
                // As if the clock had been set back after a truncation.
                long at = System.currentTimeMillis() + TimeUnit.HOURS.toMillis(Long.parseLong(words[3]));
                table.getTracker().notifyTruncated(at);
                SystemKeyspace.saveTruncationRecord(table, at, CommitLogPosition.NONE);
            }
            case "switch" -> table.getCurrentMemtable().switchOut(new OpOrder().newBarrier(),
                    new AtomicReference<>(CommitLogPosition.NONE));
            case "keep" -> kept = table.getCurrentMemtable();
            case "kept" -> {
                boolean holds = kept.rowIterator(key(table, words[3])) != null;
                return (holds ? "holds it, of " : "lacks it, of ") + kept.partitionCount();
            }
            case "leaks" -> {
                return String.valueOf(leaks(table, words[3]));
            }
            default -> throw new IllegalArgumentException(command);
        }
        return "";
    }

    /** Takes the lock of Cassandra's truncation records, until it is released. */
    private static String hold() throws InterruptedException {
        CountDownLatch held = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        released = release;
        Thread holder = new Thread(() -> {
            synchronized (SystemKeyspace.class) {
                held.countDown();
                Uninterruptibles.awaitUninterruptibly(release);
            }
        });
        holder.setDaemon(true);
        holder.start();
        held.await();
        return "";
    }

    /** Runs a full repair of a keyspace, like {@code nodetool repair --full}. */
    private static String repair(String keyspace) throws Exception {
        Queue<String> errors = new ConcurrentLinkedQueue<>();
        CountDownLatch complete = new CountDownLatch(1);
        StorageService.instance.repair(keyspace, Map.of(RepairOption.INCREMENTAL_KEY, "false"), List.of((tag, event) -> {
            if (event.getType() == ProgressEventType.ERROR || event.getType() == ProgressEventType.ABORT) {
                errors.add(event.getMessage());
            }
            if (event.getType() == ProgressEventType.COMPLETE) {
                complete.countDown();
            }
        }));
        if (!complete.await(MAX_REPAIR, TimeUnit.MINUTES)) {
            throw new IllegalStateException("repair has not ended in " + MAX_REPAIR + " minutes: " + errors);
        }
        if (!errors.isEmpty()) {
            throw new IllegalStateException("repair: " + errors);
        }
        return "";
    }

    /** Closes the value of a private field of a private field. */
    private static void close(Object of, String... names) throws Exception {
        Object at = of;
        for (String name : names) {
            Field field = at.getClass().getDeclaredField(name);
            field.setAccessible(true);
            at = field.get(at);
        }
        ((AutoCloseable) at).close();
    }

    private static DecoratedKey key(ColumnFamilyStore table, String name) {
        return table.metadata().partitioner.decorateKey(UTF8Type.instance.decompose(name));
    }

    /** Asks whether a partition exists, as compactions do, and returns how many snapshots are never closed. */
    private static int leaks(ColumnFamilyStore table, String name) throws InterruptedException {
        AtomicInteger leaks = new AtomicInteger();
        Leaks.listen(leak -> leaks.incrementAndGet());
        try {
            DecoratedKey key = key(table, name);
            for (int i = 0; i < LOOKS; i++) {
                if (table.getCurrentMemtable().rowIterator(key) == null) {
                    throw new IllegalStateException("there is no partition " + name);
                }
            }
            // The partition is also read.
            long rows = 0;
            try (UnfilteredRowIterator partition = table.getCurrentMemtable().rowIterator(key)) {
                for (; partition.hasNext(); rows++) {
                    partition.next();
                }
            }
            if (rows == 0 || table.getCurrentMemtable().rowIterator(key(table, name + "?")) != null) {
                throw new IllegalStateException(rows + " rows, or a partition that is not there");
            }
            for (int i = 0; i < LOOKS && leaks.get() == 0; i++) {
                System.gc();
                Thread.sleep(50);
            }
            return leaks.get();
        } finally {
            Leaks.listen(null);
        }
    }
}

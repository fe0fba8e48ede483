package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.SimpleStatement;
import com.datastax.driver.core.exceptions.DriverException;
import com.datastax.driver.core.policies.ConstantReconnectionPolicy;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.io.TempDir;

/**
 * Three nodes, three replicas, writes at {@code QUORUM}. The nodes are killed one after another under load, and the
 * others continue.
 *
 * <p>When the killed node is up again, each node reads every acknowledged write at {@code QUORUM}, and the killed one
 * has every write that was acknowledged at {@code ALL}, before hints or repair could restore it. Then hints, or, at
 * every second kill, repair without hints, restore the writes it has missed. After a repair each node has every
 * acknowledged write locally. Reads repair nothing ({@code read_repair = 'NONE'}).
 *
 * <p>{@code WOLLEMI_CLUSTER} is the number of kills; without it the test is skipped, because it takes minutes. {@code
 * WOLLEMI_SEED} seeds it.
 */
@EnabledIfEnvironmentVariable(named = "WOLLEMI_CLUSTER", matches = "[1-9][0-9]*")
class ClusterTest {
    private static final int NODES = 3;
    private static final List<String> MEMTABLES = List.of("wollemi", "wollemi_small");
    private static final int THREADS = 4;
    private static final int KEYS = 2_000;
    /** Acknowledged writes before a kill, and again while the node is down: between this number and twice as many. */
    private static final int WRITES = 1_500;
    /** One of this many writes is at {@code ALL}, while all nodes are up. */
    private static final int AT_ALL = 4;
    /** Upper bound on any wait, in minutes; beyond it the test counts as hung. */
    private static final int MAX_WAIT = 5;

    /** By key, the last value sent, acknowledged, and acknowledged by all nodes. A key's values only grow. */
    private record Written(AtomicIntegerArray sent, AtomicIntegerArray acknowledged, AtomicIntegerArray everywhere) {
        Written() {
            this(new AtomicIntegerArray(KEYS), new AtomicIntegerArray(KEYS), new AtomicIntegerArray(KEYS));
        }
    }

    @TempDir
    Path folder;

    private final int kills = Integer.parseInt(System.getenv("WOLLEMI_CLUSTER"));
    private final long seed = Long.parseLong(System.getenv().getOrDefault("WOLLEMI_SEED", "" + System.nanoTime()));
    private final Random random = new Random(seed);
    private final Map<String, Written> written = new LinkedHashMap<>();
    private final AtomicInteger acknowledgements = new AtomicInteger();
    private final List<Thread> threads = new ArrayList<>();
    private volatile boolean loading;
    private volatile boolean allUp = true;
    private List<Node> nodes;

    @Test
    void acknowledgedWritesSurviveTheKillOfANode() throws InterruptedException {
        System.out.println("cluster: WOLLEMI_SEED=" + seed + " WOLLEMI_CLUSTER=" + kills);
        nodes = Node.cluster(folder, NODES);
        try {
            nodes.forEach(Node::start);
            awaitLive();
            create(nodes.get(0).session());
            for (int kill = 1; kill <= kills; kill++) {
                round(kill);
            }
        } finally {
            loading = false;
            nodes.forEach(Node::close);
        }
    }

    private void create(Session session) {
        session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': " + NODES + "}");
        for (String memtable : MEMTABLES) {
            session.execute("CREATE TABLE ks." + memtable + " (p int, c int, v int, pad text, PRIMARY KEY (p, c)) "
                    + "WITH memtable = '" + memtable + "' AND read_repair = 'NONE' AND speculative_retry = 'NEVER'");
            written.put(memtable, new Written());
        }
    }

    private void round(int kill) throws InterruptedException {
        boolean hints = kill % 2 == 1;
        nodes.forEach(node -> node.run("hints " + (hints ? "on" : "off")));
        Node killed = nodes.get(random.nextInt(NODES));
        long delivered = delivered(killed);
        try (Cluster client = client()) {
            startLoad(client.connect());
            awaitWrites(WRITES + random.nextInt(WRITES));
            allUp = false;
            killed.kill();
            awaitWrites(WRITES + random.nextInt(WRITES));
            if (hints) {
                // It starts under load.
                killed.start();
                awaitWrites(WRITES / 2);
                endLoad();
            } else {
                endLoad();
                killed.start();
            }
        }
        awaitLive();
        allUp = true;
        for (Node node : nodes) {
            check(node, ConsistencyLevel.QUORUM, false);
        }
        check(killed, ConsistencyLevel.ONE, true);
        int behind = behind(killed);
        if (hints) {
            await("the hints are delivered", () -> behind(killed) == 0);
            await("the hints are counted", () -> delivered(killed) > delivered);
        } else {
            assertTrue(behind > 0, "without hints it lacks the writes made while it was down");
        }
        nodes.get(random.nextInt(NODES)).run("repair ks");
        for (Node node : nodes) {
            check(node, ConsistencyLevel.ONE, false);
        }
        System.out.println("cluster: kill " + kill + " of " + kills + ": " + acknowledgements + " writes acknowledged so far; "
                + behind + " rows behind at first, then " + (hints ? "hints and repair" : "repair"));
    }

    private Cluster client() {
        return Cluster.builder()
                .addContactPointsWithPorts(nodes.stream().map(Node::client).toArray(InetSocketAddress[]::new))
                .withPort(nodes.get(0).client().getPort())
                .withReconnectionPolicy(new ConstantReconnectionPolicy(1_000)).withoutJMXReporting().build();
    }

    private void startLoad(Session session) {
        loading = true;
        for (int i = 0; i < THREADS; i++) {
            int own = i;
            long seed = random.nextLong();
            Thread thread = new Thread(() -> load(session, own, new Random(seed)));
            thread.setDaemon(true);
            thread.start();
            threads.add(thread);
        }
    }

    private void endLoad() throws InterruptedException {
        loading = false;
        for (Thread thread : threads) {
            thread.join(TimeUnit.MINUTES.toMillis(MAX_WAIT));
            assertTrue(!thread.isAlive(), "a write is answered");
        }
        threads.clear();
    }

    /** Writes its own keys, one write at a time, so it knows the order of each key's values. */
    private void load(Session session, int own, Random draw) {
        String pad = "x".repeat(2_000);
        Map<String, PreparedStatement> updates = new LinkedHashMap<>();
        for (String memtable : MEMTABLES) {
            updates.put(memtable, session.prepare("UPDATE ks." + memtable + " SET v = ?, pad = ? WHERE p = ? AND c = ?"));
        }
        while (loading) {
            String memtable = MEMTABLES.get(draw.nextInt(MEMTABLES.size()));
            Written table = written.get(memtable);
            int key = draw.nextInt(KEYS / THREADS) * THREADS + own;
            int value = table.sent.incrementAndGet(key);
            boolean all = allUp && draw.nextInt(AT_ALL) == 0;
            try {
                // If the driver sends the write again, it has the same timestamp.
                session.execute(updates.get(memtable).bind(value, pad, key % 50, key).setIdempotent(true)
                        .setConsistencyLevel(all ? ConsistencyLevel.ALL : ConsistencyLevel.QUORUM));
            } catch (DriverException unacknowledged) {
                continue;
            }
            table.acknowledged.set(key, value);
            if (all) {
                table.everywhere.set(key, value);
            }
            acknowledgements.incrementAndGet();
        }
    }

    private void awaitWrites(int count) throws InterruptedException {
        int enough = acknowledgements.get() + count;
        await("writes are acknowledged", () -> acknowledgements.get() >= enough);
    }

    /** Waits until every node considers every node live. */
    private void awaitLive() throws InterruptedException {
        await("the nodes see each other", () -> nodes.stream().allMatch(node -> node.run("live").equals("" + NODES)));
    }

    private void await(String what, BooleanSupplier is) throws InterruptedException {
        for (long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(MAX_WAIT); !is.getAsBoolean();) {
            if (System.nanoTime() > end) {
                fail("seed " + seed + ": not in " + MAX_WAIT + " minutes: " + what + "\n"
                        + String.join("\n", nodes.stream().map(Node::log).toList()));
            }
            TimeUnit.MILLISECONDS.sleep(200);
        }
    }

    /** Returns how many hints the other nodes have delivered. */
    private long delivered(Node to) {
        return nodes.stream().filter(node -> node != to).mapToLong(node -> Long.parseLong(node.run("delivered"))).sum();
    }

    /** Returns, by key, the value that a node reads; 0 if there is none. */
    private int[] read(Node node, String memtable, ConsistencyLevel level) {
        int[] found = new int[KEYS];
        SimpleStatement all = new SimpleStatement("SELECT c, v FROM ks." + memtable);
        for (Row row : node.session().execute(all.setConsistencyLevel(level))) {
            found[row.getInt(0)] = row.getInt(1);
        }
        return found;
    }

    /** Returns how many local rows of a node are older than the acknowledged ones. */
    private int behind(Node node) {
        int behind = 0;
        for (String memtable : MEMTABLES) {
            int[] found = read(node, memtable, ConsistencyLevel.ONE);
            for (int key = 0; key < KEYS; key++) {
                behind += found[key] < written.get(memtable).acknowledged.get(key) ? 1 : 0;
            }
        }
        return behind;
    }

    /** Reads all rows through one node: none is older than required, and none was never sent. */
    private void check(Node node, ConsistencyLevel level, boolean onlyEverywhere) {
        for (String memtable : MEMTABLES) {
            Written table = written.get(memtable);
            int[] found = read(node, memtable, level);
            List<String> wrong = new ArrayList<>();
            for (int key = 0; key < KEYS; key++) {
                int least = (onlyEverywhere ? table.everywhere : table.acknowledged).get(key);
                if (found[key] < least || found[key] > table.sent.get(key)) {
                    wrong.add("key " + key + " is " + found[key] + ", not " + least + " to " + table.sent.get(key));
                }
            }
            assertEquals(List.of(), wrong, () -> "seed " + seed + ": " + memtable + " on " + node.client() + " at " + level);
        }
    }
}

package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.Session;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Throughput, latency, memory and collector pauses of a cluster under load, with rows of 1 KiB in the memtable: with
 * Cassandra's own memtables and with this one. A measurement, not a test: {@code ./test.sh -Dtest=LoadFigures}.
 *
 * <p>Each memtable has its own cluster, of one node by default, and the clusters take turns: each round writes all
 * rows to an empty table, reads, and reads and writes. Each node has all rows, and requests are at {@code QUORUM}.
 * Nothing is flushed. Half a round before the first warms the nodes up and does not count. The client is this process,
 * on the same cores.
 *
 * <p>Settings: {@code WOLLEMI_NODES} of a cluster; {@code WOLLEMI_MIB}, the amount of rows; {@code WOLLEMI_REQUESTS}
 * per read phase and mixed phase; {@code WOLLEMI_ROUNDS} that count; {@code WOLLEMI_THREADS} of the client; {@code
 * WOLLEMI_WIDE}, the rows of a partition; {@code WOLLEMI_HEAP} of a node, in MiB; {@code WOLLEMI_MEMTABLES}, those to
 * compare.
 */
class LoadFigures {
    private static final Map<String, String> PERIODIC =
            Map.of("commitlog_sync", "periodic", "commitlog_sync_period", "10s");
    private static final Map<String, String> BATCH = Map.of("commitlog_sync", "batch");

    /**
     * A memtable to measure.
     *
     * @param memtable its configuration
     * @param allocation where Cassandra's own memtables keep rows
     * @param log how the commit log is synced
     */
    private record Contender(String memtable, String allocation, Map<String, String> log) {}

    /** Writes survive a killed process, or (batch, disk) a loss of power. */
    private static final Map<String, Contender> CONTENDERS = new LinkedHashMap<>();

    static {
        CONTENDERS.put("skiplist", new Contender("skiplist", "heap_buffers", PERIODIC));
        CONTENDERS.put("trie", new Contender("trie", "offheap_objects", PERIODIC));
        CONTENDERS.put("process", new Contender("wollemi_large", "heap_buffers", PERIODIC));
        CONTENDERS.put("trie-batch", new Contender("trie", "offheap_objects", BATCH));
        CONTENDERS.put("disk", new Contender("wollemi_disk_large", "heap_buffers", PERIODIC));
    }

    /**
     * What one phase of a round gave.
     *
     * @param processor the nodes' processor time per request, in microseconds
     */
    private record Phase(Load.Outcome load, double processor, Pauses.Summary pauses) {}

    /**
     * The heap of a node after a collection, and what its memtable owns, in MiB, at the end of the write phase.
     *
     * @param heap the heap's use
     * @param added by how much it is more than with an empty table
     */
    private record Memory(double heap, double added, double ownedOnHeap, double ownedOffHeap) {}

    /** One round of one memtable. */
    private record Round(Map<Load.Kind, Phase> phases, Memory memory) {}

    @TempDir
    Path folder;

    private final int size = Figures.setting("WOLLEMI_NODES", 1);
    private final int mib = Figures.setting("WOLLEMI_MIB", 128);
    private final int requests = Figures.setting("WOLLEMI_REQUESTS", 100_000);
    private final int rounds = Figures.setting("WOLLEMI_ROUNDS", 3);
    private final int threads = Figures.setting("WOLLEMI_THREADS", 16);
    private final int wide = Figures.setting("WOLLEMI_WIDE", 1);
    private final int heap = Figures.setting("WOLLEMI_HEAP", 2048);
    private final List<String> names = Figures.setting("WOLLEMI_MEMTABLES", List.copyOf(CONTENDERS.keySet()));
    private final Map<String, List<Node>> clusters = new LinkedHashMap<>();
    private final Map<String, List<Round>> measured = new LinkedHashMap<>();

    @Test
    void measure() throws Exception {
        try {
            for (String name : names) {
                clusters.put(name, start(name));
                measured.put(name, new ArrayList<>());
            }
            for (int round = 0; round <= rounds; round++) {
                for (String name : names) {
                    if (round == 0) {
                        round(clusters.get(name), round, (mib << 10) / 2, requests / 2);
                    } else {
                        Round one = round(clusters.get(name), round, mib << 10, requests);
                        measured.get(name).add(one);
                        System.out.printf(Locale.ROOT, "%s, round %d of %d: %s%n", name, round, rounds, one);
                    }
                }
            }
        } finally {
            clusters.values().forEach(nodes -> nodes.forEach(Node::close));
        }
        report();
    }

    private List<Node> start(String name) throws InterruptedException {
        Contender contender = CONTENDERS.get(name);
        if (contender == null) {
            throw new IllegalArgumentException("WOLLEMI_MEMTABLES has " + name + "; there are " + CONTENDERS.keySet());
        }
        Map<String, String> settings = new LinkedHashMap<>(contender.log);
        settings.put("memtable_allocation_type", contender.allocation);
        // Room for all rows, so that nothing is flushed.
        settings.put("memtable_heap_space", heap / 2 + "MiB");
        settings.put("memtable_offheap_space", Math.max(heap / 2, 4 * mib) + "MiB");
        settings.put("concurrent_reads", "32");
        settings.put("concurrent_writes", "32");
        List<Node> nodes = size == 1 ? List.of(Node.measured(folder.resolve(name), heap, settings))
                : Node.measuredCluster(folder.resolve(name), size, heap, settings);
        nodes.forEach(Node::start);
        while (!nodes.stream().allMatch(node -> node.run("live").equals("" + size))) {
            TimeUnit.MILLISECONDS.sleep(200);
        }
        Figures.createTable(nodes.get(0), contender.memtable, "p int, c int, pad text, PRIMARY KEY (p, c)", size);
        return nodes;
    }

    private Round round(List<Node> nodes, int number, int rows, int requests)
            throws IOException, InterruptedException, ExecutionException {
        try (Cluster client = Node.clientOf(nodes)) {
            return round(client.connect(), nodes, number, rows, requests);
        }
    }

    private static double processorSeconds(List<Node> nodes) {
        return nodes.stream().mapToDouble(Node::processorSeconds).sum();
    }

    private Round round(Session session, List<Node> nodes, int number, int rows, int requests)
            throws IOException, InterruptedException, ExecutionException {
        session.execute("TRUNCATE ks.t");
        double[] empty = memory(nodes.get(0));
        Load load = new Load(session, rows, wide);
        Pauses pauses = new Pauses(nodes);
        pauses.next();
        Map<Load.Kind, Phase> phases = new LinkedHashMap<>();
        Memory memory = null;
        for (Load.Kind kind : Load.Kind.values()) {
            int count = kind == Load.Kind.WRITE ? rows : requests;
            double before = processorSeconds(nodes);
            Load.Outcome outcome = load.run(kind, count, threads, number);
            double processor = (processorSeconds(nodes) - before) * 1e6 / count;
            phases.put(kind, new Phase(outcome, processor, pauses.next()));
            if (kind == Load.Kind.WRITE) {
                double[] full = memory(nodes.get(0));
                memory = new Memory(full[0], full[0] - empty[0], full[1], full[2]);
                pauses.next();
            }
        }
        nodes.forEach(node -> assertEquals("0", node.run("sstables ks t"), "nothing is flushed"));
        return new Round(phases, memory);
    }

    /** Returns, in MiB, the heap's use after a collection, and what the memtable owns on and off the heap. */
    private static double[] memory(Node node) {
        double[] mib = new double[3];
        String[] bytes = node.run("memory ks t").split(" ");
        for (int i = 0; i < mib.length; i++) {
            mib[i] = Long.parseLong(bytes[i]) / (double) (1 << 20);
        }
        return mib;
    }

    private void report() throws IOException {
        System.out.printf("load: %d nodes; %d MiB of rows of 1 KiB, %d per partition; %d requests per read or mixed "
                + "phase; %d rounds; %d client threads; heap %d MiB%n%n",
                size, mib, wide, requests, rounds, threads, heap);
        for (Load.Kind kind : Load.Kind.values()) {
            Figures.print(List.of(kind.name().toLowerCase(Locale.ROOT), "requests per second", "p50, ms", "p99, ms",
                    "processor time of the nodes per request, µs", "pauses", "pauses in total, ms",
                    "longest pause, ms"),
                    rows(List.of(
                            column("%.0f", round -> round.phases.get(kind).load.perSecond()),
                            column("%.2f", round -> round.phases.get(kind).load.p50()),
                            column("%.1f", round -> round.phases.get(kind).load.p99()),
                            column("%.0f", round -> round.phases.get(kind).processor),
                            column("%.0f", round -> round.phases.get(kind).pauses.count()),
                            column("%.0f", round -> round.phases.get(kind).pauses.total()),
                            column("%.0f", round -> round.phases.get(kind).pauses.max()))));
        }
        Figures.print(List.of("MiB after the writes", "heap used after a collection", "of it due to the rows",
                "the memtable's own, on the heap", "off the heap"),
                rows(List.of(
                        column("%.0f", round -> round.memory.heap),
                        column("%.0f", round -> round.memory.added),
                        column("%.0f", round -> round.memory.ownedOnHeap),
                        column("%.0f", round -> round.memory.ownedOffHeap))));
        Figures.save("load-figures.json", Map.of("nodes", size, "mib", mib, "rowsPerPartition", wide,
                "requests", requests, "threads", threads, "heapMib", heap, "rounds", measured));
    }

    private static Function<List<Round>, String> column(String format, ToDoubleFunction<Round> figure) {
        return rounds -> Figures.spread(format, rounds.stream().mapToDouble(figure).boxed().toList());
    }

    private List<List<String>> rows(List<Function<List<Round>, String>> columns) {
        List<List<String>> rows = new ArrayList<>();
        measured.forEach((name, rounds) -> {
            List<String> row = new ArrayList<>(List.of(name));
            columns.forEach(column -> row.add(column.apply(rounds)));
            rows.add(row);
        });
        return rows;
    }
}

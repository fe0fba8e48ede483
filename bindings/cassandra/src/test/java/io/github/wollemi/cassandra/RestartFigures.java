package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * How long a killed node takes to its first answer, with unflushed rows: with Cassandra's own memtable and the commit
 * log, and with this one without. A measurement, not a test: {@code ./test.sh -Dtest=RestartFigures}.
 *
 * <p>The node itself writes the rows, several at a time, since a client takes minutes for a GiB.
 *
 * <p>{@code WOLLEMI_MIB} is the unflushed amount, in rows of 1 KiB, {@code WOLLEMI_ROUNDS} the number of rounds, {@code
 * WOLLEMI_HEAP} the heap of a node, in MiB.
 */
class RestartFigures {
    private static final Map<String, String> MEMTABLES = new LinkedHashMap<>();

    static {
        MEMTABLES.put("trie", "trie");
        MEMTABLES.put("process", "wollemi_large");
        MEMTABLES.put("disk", "wollemi_disk_large");
    }

    /**
     * One round of one memtable: seconds, and MiB on the disk.
     *
     * @param written the time to write the rows
     * @param processor the node's processor time for that
     * @param full from the start of a node with the rows to its first answer
     * @param empty the same without rows
     * @param said what the node's log says of the commit log and of adopted pools
     */
    private record Round(double written, double processor, double full, double empty, double pools, double log,
            String said) {
        double added() {
            return full - empty;
        }
    }

    @TempDir
    Path folder;

    private final int mib = Figures.setting("WOLLEMI_MIB", 128);
    private final int rounds = Figures.setting("WOLLEMI_ROUNDS", 3);
    private final int heap = Figures.setting("WOLLEMI_HEAP", 6144);
    private final Map<String, List<Round>> measured = new LinkedHashMap<>();

    @Test
    void measure() throws Exception {
        for (int number = 0; number < rounds; number++) {
            for (var memtable : MEMTABLES.entrySet()) {
                Round round = measure(memtable.getValue(), folder.resolve(memtable.getKey() + number));
                measured.computeIfAbsent(memtable.getKey(), name -> new ArrayList<>()).add(round);
                System.out.printf(Locale.ROOT, "%s: %s%n", memtable.getKey(), round);
            }
        }
        report();
    }

    private Round measure(String memtable, Path folder) throws Exception {
        int rows = mib << 10;
        // Room for all rows, so that nothing is flushed.
        Map<String, String> settings = Map.of("commitlog_sync", "periodic", "commitlog_sync_period", "10s",
                "memtable_allocation_type", "offheap_objects", "memtable_heap_space", heap / 2 + "MiB",
                "memtable_offheap_space", Math.max(heap / 2, 4 * mib) + "MiB", "commitlog_total_space", "8GiB");
        try (Node node = Node.measured(folder, heap, settings).start()) {
            Figures.createTable(node, memtable, "p int PRIMARY KEY, pad text", 1);
            double empty = secondsToAnswer(node, -1);
            double before = node.processorSeconds();
            long began = System.nanoTime();
            node.run("fill ks t " + rows);
            double written = Figures.seconds(began);
            double processor = node.processorSeconds() - before;
            assertEquals("0", node.run("sstables ks t"), "nothing is flushed");
            double pools = Figures.mib(node.pools());
            double log = Figures.mib(folder.resolve("commitlog"));
            double full = secondsToAnswer(node, rows - 1);
            return new Round(written, processor, full, empty, pools, log, said(folder.resolve("node.log")));
        }
    }

    /** Kills it, starts it, and reads a row that exists (-1: none). */
    private static double secondsToAnswer(Node node, int row) {
        node.kill();
        long began = System.nanoTime();
        node.start();
        var answer = node.session().execute("SELECT pad FROM ks.t WHERE p = " + row).one();
        double took = Figures.seconds(began);
        if (row >= 0) {
            assertNotNull(answer, "a row is lost");
        }
        return took;
    }

    /** Returns the node's last messages about the replay and about an adopted pool. */
    private static String said(Path log) throws IOException {
        String replay = "";
        String adoption = "";
        for (String line : Files.readAllLines(log)) {
            if (line.contains("Log replay complete")) {
                replay = line.replaceFirst(".* CommitLog ", "");
            } else if (line.contains("adopted the memtable pool")) {
                adoption = line.replaceFirst(".*/", "; adopted ");
            }
        }
        return replay + adoption;
    }

    private void report() throws IOException {
        System.out.printf("restart: %d MiB of rows of 1 KiB; %d rounds; heap %d MiB%n%n", mib, rounds, heap);
        List<String> head = new ArrayList<>(List.of(""));
        head.addAll(measured.keySet());
        Figures.print(head, List.of(
                row("rows written in, s", "%.1f", Round::written),
                row("the node's processor time for it, s", "%.1f", Round::processor),
                row("first answer after a kill, s", "%.1f", Round::full),
                row("the same start without rows, s", "%.1f", Round::empty),
                row("difference, due to the rows, s", "%.2f", Round::added),
                row("pools, MiB", "%.0f", Round::pools),
                row("commit log at the kill, MiB", "%.0f", Round::log)));
        Figures.save("restart-figures.json", Map.of("mib", mib, "heapMib", heap, "rounds", measured));
    }

    private List<String> row(String name, String format, ToDoubleFunction<Round> figure) {
        List<String> row = new ArrayList<>(List.of(name));
        measured.values().forEach(
                rounds -> row.add(Figures.spread(format, rounds.stream().mapToDouble(figure).boxed().toList())));
        return row;
    }
}

package io.github.wollemi.cassandra;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The garbage collector's pauses, from the nodes' logs of them. */
final class Pauses {
    /** For instance {@code [2.3s][info][gc] GC(3) Pause Young (Normal) (G1 Evacuation Pause) 90M->20M(512M) 4.567ms}. */
    private static final Pattern PAUSE = Pattern.compile(".*\\bPause .* ([0-9.]+)ms");

    /**
     * Pauses of one period.
     *
     * @param count their number
     * @param total their total length in milliseconds
     * @param max the longest, in milliseconds
     */
    record Summary(int count, double total, double max) {}

    private final List<Path> logs;
    private final Map<Path, Integer> seen = new HashMap<>();

    Pauses(List<Node> nodes) {
        this.logs = nodes.stream().map(node -> node.folder().resolve("gc.log")).toList();
    }

    /** Returns the pauses of all nodes since the last call. */
    Summary next() throws IOException {
        List<Double> recent = new ArrayList<>();
        for (Path log : logs) {
            List<Double> all = new ArrayList<>();
            for (String line : Files.readAllLines(log)) {
                Matcher pause = PAUSE.matcher(line);
                if (pause.matches()) {
                    all.add(Double.parseDouble(pause.group(1)));
                }
            }
            recent.addAll(all.subList(seen.getOrDefault(log, 0), all.size()));
            seen.put(log, all.size());
        }
        return new Summary(recent.size(), recent.stream().mapToDouble(pause -> pause).sum(),
                recent.stream().mapToDouble(pause -> pause).max().orElse(0));
    }
}

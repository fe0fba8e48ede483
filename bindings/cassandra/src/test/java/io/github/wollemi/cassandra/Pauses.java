package io.github.wollemi.cassandra;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The garbage collector's pauses, from a node's log of them. */
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

    private final Path log;
    private int seen;

    Pauses(Node node) {
        this.log = node.folder().resolve("gc.log");
    }

    /** Returns the pauses since the last call. */
    Summary next() throws IOException {
        List<Double> all = new ArrayList<>();
        for (String line : Files.readAllLines(log)) {
            Matcher pause = PAUSE.matcher(line);
            if (pause.matches()) {
                all.add(Double.parseDouble(pause.group(1)));
            }
        }
        List<Double> recent = all.subList(seen, all.size());
        seen = all.size();
        return new Summary(recent.size(), recent.stream().mapToDouble(pause -> pause).sum(),
                recent.stream().mapToDouble(pause -> pause).max().orElse(0));
    }
}

package io.github.wollemi.cassandra;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/** What the measurements have in common: their settings, rows, nodes, and reports. */
final class Figures {
    /** The content of a row of 1 KiB. */
    static final String PAD = "x".repeat(1_000);

    private Figures() {}

    /** Returns a number from the environment. */
    static int setting(String name, int otherwise) {
        return Integer.parseInt(System.getenv().getOrDefault(name, "" + otherwise));
    }

    /** Returns words from the environment, where spaces separate them. */
    static List<String> setting(String name, List<String> otherwise) {
        return List.of(System.getenv().getOrDefault(name, String.join(" ", otherwise)).strip().split("\\s+"));
    }

    /** Creates the table {@code ks.t}, with this number of replicas. */
    static void createTable(Node node, String memtable, String columns, int replicas) {
        node.session().execute("CREATE KEYSPACE ks WITH replication = "
                + "{'class': 'SimpleStrategy', 'replication_factor': " + replicas + "}");
        node.session().execute("CREATE TABLE ks.t (" + columns + ") WITH memtable = '" + memtable + "'");
    }

    static double seconds(long began) {
        return (System.nanoTime() - began) / 1e9;
    }

    /** Returns the median, and the extremes if there are several values. */
    static String spread(String format, List<Double> values) {
        double[] sorted = values.stream().mapToDouble(value -> value).sorted().toArray();
        int middle = sorted.length / 2;
        double median = sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
        String text = String.format(Locale.ROOT, format, median);
        if (sorted.length == 1) {
            return text;
        }
        String range = " (" + format + "–" + format + ")";
        return text + String.format(Locale.ROOT, range, sorted[0], sorted[sorted.length - 1]);
    }

    /** Prints a table in Markdown. */
    static void print(List<String> head, List<List<String>> rows) {
        System.out.println("| " + String.join(" | ", head) + " |");
        System.out.println("|" + "---|".repeat(head.size()));
        rows.forEach(row -> System.out.println("| " + String.join(" | ", row) + " |"));
        System.out.println();
    }

    /** Writes all figures to a file of the build's folder, as JSON. */
    static void save(String name, Object figures) throws IOException {
        Path file = Path.of("target", name);
        new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT).writeValue(file.toFile(), figures);
        System.out.println("all figures: " + file.toAbsolutePath());
    }

    /** Returns the MiB that a folder's files take on the disk. */
    static double mib(Path folder) throws IOException {
        if (!Files.exists(folder)) {
            return 0;
        }
        Process du = new ProcessBuilder("du", "-sk", folder.toString()).start();
        return Long.parseLong(new String(du.getInputStream().readAllBytes()).split("\\s")[0]) / 1024.0;
    }
}

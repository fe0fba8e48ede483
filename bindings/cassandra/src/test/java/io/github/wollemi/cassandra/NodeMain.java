package io.github.wollemi.cassandra;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.service.CassandraDaemon;

/**
 * A Cassandra node as a process of its own. It takes commands from its input, one a line, answers each with a line, and ends
 * when its input does: no node outlives the test that has started it.
 */
public final class NodeMain {
    private NodeMain() {}

    /** Starts the node that the system properties configure. */
    public static void main(String[] arguments) throws IOException {
        // What the node prints must not be taken for an answer.
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

    private static String run(String[] words) {
        ColumnFamilyStore table = Keyspace.open(words[1]).getColumnFamilyStore(words[2]);
        switch (words[0]) {
            case "flush" -> table.forceBlockingFlush(ColumnFamilyStore.FlushReason.USER_FORCED);
            case "compact" -> table.forceMajorCompaction();
            case "sstables" -> {
                return String.valueOf(table.getLiveSSTables().size());
            }
            case "memtable" -> {
                var memtable = table.getCurrentMemtable();
                return memtable.getClass().getSimpleName() + " " + memtable.partitionCount();
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }
}

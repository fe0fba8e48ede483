package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.datastax.driver.core.ResultSet;
import com.datastax.driver.core.SimpleStatement;
import com.datastax.driver.core.exceptions.DriverException;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Random statements to two sets of tables, one with memtables in pools and one with Cassandra's own: the results are
 * the same, whatever is flushed, compacted, altered, truncated or killed in between.
 *
 * <p>{@code WOLLEMI_TWIN} is the number of statements, {@code WOLLEMI_SEED} the seed.
 */
class TwinTest {
    private static final int SHORT_TTL = 2;

    @TempDir
    Path folder;

    private final int statements = Integer.parseInt(System.getenv().getOrDefault("WOLLEMI_TWIN", "300"));
    private final long seed = Long.parseLong(System.getenv().getOrDefault("WOLLEMI_SEED", "" + System.nanoTime()));
    private final Random random = new Random(seed);
    private final Statements source = new Statements(random, SHORT_TTL);
    private Node node;
    private String last = "";
    /** Everything done so far, for the analysis of a difference. */
    private final StringBuilder history = new StringBuilder();

    @Test
    void pooledMemtablesAnswerAsCassandrasOwn() throws InterruptedException {
        System.out.println("twin: WOLLEMI_SEED=" + seed + " WOLLEMI_TWIN=" + statements);
        try (Node started = Node.alone(folder.resolve("node")).start()) {
            node = started;
            node.session().execute(
                    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            for (String table : Statements.TABLES) {
                node.session().execute(String.format(table, "ours", random.nextInt(4) == 0 ? "wollemi_disk" : "wollemi"));
                node.session().execute(String.format(table, "theirs", "default"));
            }
            both(Statements.INDEX);
            for (int i = 1; i <= statements; i++) {
                if (random.nextInt(3) == 0) {
                    compare(source.read());
                } else {
                    both(source.change());
                }
                if (i % 200 == 0 || i == statements) {
                    // Expiring values have expired in both.
                    TimeUnit.SECONDS.sleep(SHORT_TTL + 1);
                    between(i);
                    Statements.readAll().forEach(this::compare);
                }
                between(i);
            }
        }
    }

    /** Runs an occasional operation between statements. */
    private void between(int i) {
        int which = random.nextInt(100);
        String table = List.of("wide", "single", "counts").get(random.nextInt(3));
        if (which < 2) {
            command("flush ks " + table + "_ours");
        } else if (which == 2) {
            command("flush ks " + table + "_theirs");
        } else if (which == 3) {
            command("compact ks " + table + "_ours");
        } else if (which == 4) {
            both(source.alter());
        } else if (i % 150 == 0) {
            last = "kill -9";
            history.append(last).append('\n');
            node.killAndStart();
            Statements.readAll().forEach(this::compare);
        }
    }

    private void command(String command) {
        history.append(command).append('\n');
        node.run(command);
    }

    private ResultSet execute(String statement, String suffix) {
        SimpleStatement simple = new SimpleStatement(String.format(statement, suffix));
        simple.setFetchSize(7);
        return node.session().execute(simple);
    }

    private void both(String statement) {
        last = statement;
        history.append(statement).append('\n');
        assertEquals(done(statement, "theirs"), done(statement, "ours"), () -> told(statement));
    }

    /** Returns a statement's outcome: whether it was applied, or why not. */
    private String done(String statement, String suffix) {
        try {
            return String.valueOf(execute(statement, suffix).wasApplied());
        } catch (DriverException refused) {
            return refused.getMessage().replace(suffix, "");
        }
    }

    private void compare(String statement) {
        List<String> theirs = rows(statement, "theirs");
        List<String> ours = rows(statement, "ours");
        if (!theirs.equals(ours)) {
            // A value may have expired between the two reads.
            sleepShortTtl();
            theirs = rows(statement, "theirs");
            ours = rows(statement, "ours");
        }
        assertEquals(String.join("\n", theirs), String.join("\n", ours), () -> told(statement));
    }

    private static void sleepShortTtl() {
        try {
            TimeUnit.SECONDS.sleep(SHORT_TTL + 1);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    private List<String> rows(String statement, String suffix) {
        try {
            return execute(statement, suffix).all().stream().map(Object::toString).toList();
        } catch (DriverException failed) {
            throw new AssertionError(suffix + ": " + told(statement) + "\n" + node.log(), failed);
        }
    }

    private String told(String statement) {
        return "seed " + seed + ": " + statement + " after " + last + "; all statements:\n" + history;
    }
}

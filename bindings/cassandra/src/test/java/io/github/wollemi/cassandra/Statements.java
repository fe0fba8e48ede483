package io.github.wollemi.cassandra;

import java.util.List;
import java.util.Random;

/**
 * Generates random CQL statements for tables of one kind. {@code %s} stands for the suffix of the table's name, so that
 * the same statement can be sent to two.
 */
final class Statements {
    /** The tables, with {@code %s} for the suffix and for the memtable. */
    static final List<String> TABLES = List.of(
            "CREATE TABLE ks.wide_%s (p int, c1 int, c2 text, s int static, sm map<int, text> static, v int, w text, "
                    + "m map<int, text>, l list<int>, t set<int>, f frozen<list<int>>, PRIMARY KEY (p, c1, c2)) "
                    + "WITH CLUSTERING ORDER BY (c1 ASC, c2 DESC) AND memtable = '%s' AND gc_grace_seconds = 86400",
            "CREATE TABLE ks.single_%s (a int, b text, v bigint, w blob, PRIMARY KEY ((a, b))) WITH memtable = '%s'",
            "CREATE TABLE ks.counts_%s (p int, c int, n counter, k counter, PRIMARY KEY (p, c)) WITH memtable = '%s'");
    static final String INDEX = "CREATE INDEX ON ks.wide_%s (w)";

    /** A time to live beyond any run of the tests. */
    private static final int LONG = 1_000_000;

    private final Random random;
    private final int shortTtl;
    private long micros;
    private long last;
    private boolean extra;

    /** @param shortTtl a time to live in seconds that ends during the test */
    Statements(Random random, int shortTtl) {
        this.random = random;
        this.shortTtl = shortTtl;
    }

    private int draw(int bound) {
        return random.nextInt(bound);
    }

    private <T> T one(List<T> of) {
        return of.get(draw(of.size()));
    }

    /** Returns a timestamp: mostly later than all before, sometimes equal, sometimes earlier. */
    private String timestamp() {
        micros = Math.max(micros + 1, System.currentTimeMillis() * 1000);
        int which = draw(20);
        long now = which == 0 && last != 0 ? last : which == 1 ? micros - 1_000 : micros;
        last = now;
        return "TIMESTAMP " + now;
    }

    private String ttl() {
        return switch (draw(8)) {
            case 0 -> " AND TTL " + shortTtl;
            case 1 -> " AND TTL " + LONG;
            default -> "";
        };
    }

    /**
     * Returns a time to live for whole rows, of which only some columns are read. Cassandra 5.0.5 omits cells that are
     * older than the row and not requested; after the row's time to live has ended, its presence then depends on what
     * was flushed together.
     */
    private String longTtl() {
        return draw(4) == 0 ? " AND TTL " + LONG : "";
    }

    private String text() {
        return draw(8) == 0 ? "''" : "'" + "xyz".charAt(draw(3)) + draw(4) + "'";
    }

    private String value() {
        return draw(8) == 0 ? "null" : String.valueOf(draw(1000) - 500);
    }

    private String p() {
        return String.valueOf(draw(6));
    }

    private String c1() {
        return String.valueOf(draw(9) - 4);
    }

    private String row() {
        return "p = " + p() + " AND c1 = " + c1() + " AND c2 = " + text();
    }

    /** Returns a statement that changes something. */
    String change() {
        int which = draw(100);
        if (which < 60) {
            return wide();
        }
        if (which < 75) {
            return single();
        }
        if (which < 90) {
            return count();
        }
        if (which < 97) {
            StringBuilder batch = new StringBuilder(draw(2) == 0 ? "BEGIN BATCH " : "BEGIN UNLOGGED BATCH ");
            for (int i = 2 + draw(4); i > 0; i--) {
                batch.append(draw(3) == 0 ? single() : wide()).append("; ");
            }
            return batch + "APPLY BATCH";
        }
        return conditional();
    }

    private String conditional() {
        return switch (draw(3)) {
            case 0 -> "INSERT INTO ks.wide_%1$s (p, c1, c2, v) VALUES (" + p() + ", " + c1() + ", " + text() + ", 1) "
                    + "IF NOT EXISTS";
            case 1 -> "UPDATE ks.wide_%1$s SET v = " + value() + " WHERE " + row() + " IF v > 0";
            default -> "DELETE FROM ks.wide_%1$s WHERE " + row() + " IF EXISTS";
        };
    }

    private String wide() {
        String at = " USING " + timestamp();
        return switch (draw(20)) {
            case 0, 1, 2, 3 -> "INSERT INTO ks.wide_%1$s (p, c1, c2, v, w) VALUES (" + p() + ", " + c1() + ", " + text()
                    + ", " + value() + ", " + text() + ")" + at + longTtl();
            // No key twice: the meaning of a literal with a repeated key depends on whether the row was flushed.
            case 4 -> "INSERT INTO ks.wide_%1$s (p, c1, c2, m, l, t, f) VALUES (" + p() + ", " + c1() + ", " + text()
                    + ", {1: 'a', " + (2 + draw(4)) + ": 'b'}, [1, " + draw(9) + "], {" + draw(3) + ", " + (3 + draw(3)) + "}, [7])"
                    + at + longTtl();
            case 5, 6, 7 -> "UPDATE ks.wide_%1$s" + at + ttl() + " SET " + set() + " WHERE " + row();
            case 8 -> "UPDATE ks.wide_%1$s" + at + ttl() + " SET s = " + value() + " WHERE p = " + p();
            case 9 -> "UPDATE ks.wide_%1$s" + at + " SET sm[" + draw(4) + "] = " + text() + " WHERE p = " + p();
            case 10 -> "DELETE FROM ks.wide_%1$s" + at + " WHERE " + row();
            case 11 -> "DELETE " + one(List.of("v", "w", "m", "l", "m[1]", "t")) + " FROM ks.wide_%1$s" + at + " WHERE " + row();
            case 12 -> "DELETE FROM ks.wide_%1$s" + at + " WHERE p = " + p() + " AND c1 = " + c1();
            case 13 -> "DELETE FROM ks.wide_%1$s" + at + " WHERE p = " + p() + " AND c1 >" + one(List.of("", "=")) + " "
                    + (draw(6) - 4) + " AND c1 <" + one(List.of("", "=")) + " " + draw(5);
            case 14 -> "DELETE FROM ks.wide_%1$s" + at + " WHERE p = " + p() + " AND c1 = " + c1() + " AND c2 < " + text();
            case 15 -> draw(3) == 0 ? "DELETE FROM ks.wide_%1$s" + at + " WHERE p = " + p()
                    : "DELETE s FROM ks.wide_%1$s" + at + " WHERE p = " + p();
            case 16 -> extra ? "UPDATE ks.wide_%1$s" + at + " SET x = " + value() + " WHERE " + row() : wide();
            default -> "INSERT INTO ks.wide_%1$s (p, c1, c2) VALUES (" + p() + ", " + c1() + ", " + text() + ")" + at + longTtl();
        };
    }

    private String set() {
        return switch (draw(8)) {
            case 0 -> "v = " + value();
            case 1 -> "w = " + text();
            case 2 -> "m[" + draw(5) + "] = " + text();
            case 3 -> "m = m + {" + draw(5) + ": 'n'}";
            case 4 -> "l = l + [" + draw(9) + "]";
            case 5 -> "l = [" + draw(9) + "] + l";
            case 6 -> "t = t - {" + draw(5) + "}";
            default -> "f = [" + draw(9) + ", " + draw(9) + "], v = " + value();
        };
    }

    private String single() {
        String at = " USING " + timestamp();
        String key = "a = " + draw(10) + " AND b = " + text();
        return switch (draw(4)) {
            case 0 -> "DELETE FROM ks.single_%1$s" + at + " WHERE " + key;
            case 1 -> "UPDATE ks.single_%1$s" + at + ttl() + " SET v = " + value() + " WHERE " + key;
            default -> "INSERT INTO ks.single_%1$s (a, b, v, w) VALUES (" + draw(10) + ", " + text() + ", " + value()
                    + ", 0x" + "ab".repeat(draw(300)) + ")" + at + ttl();
        };
    }

    private String count() {
        String key = "p = " + draw(4) + " AND c = " + draw(5);
        return draw(30) == 0 ? "DELETE FROM ks.counts_%1$s WHERE " + key
                : "UPDATE ks.counts_%1$s SET n = n + " + (draw(21) - 10) + (draw(3) == 0 ? ", k = k + 1" : "")
                        + " WHERE " + key;
    }

    /** Returns a statement that changes a whole table. */
    String alter() {
        if (draw(4) == 0) {
            return "TRUNCATE ks." + one(List.of("wide", "single", "counts")) + "_%1$s";
        }
        extra = !extra;
        return "ALTER TABLE ks.wide_%1$s " + (extra ? "ADD x int" : "DROP x");
    }

    /** Returns a statement that reads. */
    String read() {
        String wide = "SELECT " + one(List.of("*", "p, c1, c2, v", "s, w, m", "p, c1, writetime(w), l")) + " FROM ks.wide_%1$s";
        return switch (draw(14)) {
            case 0 -> wide;
            case 1 -> wide + " WHERE p = " + p();
            case 2 -> wide + " WHERE p = " + p() + " ORDER BY c1 DESC, c2 ASC LIMIT " + (1 + draw(20));
            case 3 -> wide + " WHERE " + row();
            case 4 -> wide + " WHERE p = " + p() + " AND c1 > " + c1() + " AND c1 <= " + draw(5);
            case 5 -> wide + " WHERE p = " + p() + " AND (c1, c2) >= (" + c1() + ", " + text() + ") ORDER BY c1 ASC";
            case 6 -> wide + " WHERE p IN (" + p() + ", " + p() + ") AND c1 IN (" + c1() + ", " + c1() + ", 3)";
            case 7 -> wide + " WHERE p IN (" + p() + ", " + p() + ") PER PARTITION LIMIT " + (1 + draw(3));
            // Over all partitions, 5.0.5 fails at these two if there are SSTables, with its own memtables too.
            case 8 -> "SELECT DISTINCT p, s, sm FROM ks.wide_%1$s WHERE p IN (" + p() + ", " + p() + ")";
            case 9 -> wide + " WHERE token(p) > " + random.nextLong() + " AND c1 >= " + c1() + " ALLOW FILTERING";
            case 10 -> wide + " WHERE w = " + text();
            case 11 -> "SELECT * FROM ks.single_%1$s" + (draw(2) == 0 ? "" : " WHERE a = " + draw(10) + " AND b = " + text());
            case 12 -> "SELECT count(*), max(v) FROM ks.wide_%1$s WHERE p = " + p();
            default -> "SELECT * FROM ks.counts_%1$s" + (draw(2) == 0 ? "" : " WHERE p = " + draw(4) + " AND c < " + draw(6));
        };
    }

    /**
     * Returns statements that read everything, but of the timestamps only those of {@code w}: conditional writes, which
     * set only {@code v}, have timestamps of the node, and these differ between the two tables.
     */
    static List<String> readAll() {
        return List.of("SELECT * FROM ks.wide_%1$s",
                "SELECT p, c1, c2, writetime(w) FROM ks.wide_%1$s",
                "SELECT * FROM ks.single_%1$s", "SELECT * FROM ks.counts_%1$s");
    }
}

package io.github.wollemi.cassandra;

import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.Session;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/** Clients that send one request after the other, each from its own thread, to the table {@code ks.t}. */
final class Load {
    /** The kinds of load, in the order in which they run. */
    enum Kind {
        /** Inserts each row once. */
        WRITE,
        /** Reads random rows. */
        READ,
        /** Reads or replaces random rows, with equal probability. */
        MIXED
    }

    /**
     * The outcome of a load.
     *
     * @param perSecond requests per second
     * @param p50 the median latency in milliseconds
     * @param p99 the 99th percentile of the latency in milliseconds
     */
    record Outcome(double perSecond, double p50, double p99) {}

    private final PreparedStatement insert;
    private final PreparedStatement select;
    private final Session session;
    private final int rows;
    private final int perPartition;

    /** @param perPartition the rows of a partition */
    Load(Session session, int rows, int perPartition) {
        this.session = session;
        this.rows = rows;
        this.perPartition = perPartition;
        this.insert = session.prepare("INSERT INTO ks.t (p, c, pad) VALUES (?, ?, ?)");
        this.select = session.prepare("SELECT pad FROM ks.t WHERE p = ? AND c = ?");
    }

    Outcome run(Kind kind, int requests, int threads, long seed) throws InterruptedException, ExecutionException {
        AtomicInteger next = new AtomicInteger();
        long[] nanos = new long[requests];
        ExecutorService clients = Executors.newFixedThreadPool(threads);
        long began = System.nanoTime();
        try {
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                Random random = new Random(seed + i);
                all.add(clients.submit(() -> {
                    for (int request; (request = next.getAndIncrement()) < requests;) {
                        long sent = System.nanoTime();
                        send(kind, kind == Kind.WRITE ? request % rows : random.nextInt(rows), random);
                        nanos[request] = System.nanoTime() - sent;
                    }
                }));
            }
            for (Future<?> client : all) {
                client.get();
            }
        } finally {
            clients.shutdown();
        }
        double took = Figures.seconds(began);
        Arrays.sort(nanos);
        return new Outcome(requests / took, nanos[requests / 2] / 1e6, nanos[(int) (requests * 0.99)] / 1e6);
    }

    private void send(Kind kind, int row, Random random) {
        if (kind == Kind.WRITE || kind == Kind.MIXED && random.nextBoolean()) {
            session.execute(insert.bind(row / perPartition, row % perPartition, Figures.PAD));
        } else if (session.execute(select.bind(row / perPartition, row % perPartition)).one() == null) {
            throw new IllegalStateException("row " + row + " is missing");
        }
    }
}

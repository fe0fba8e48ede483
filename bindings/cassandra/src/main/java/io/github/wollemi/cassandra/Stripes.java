package io.github.wollemi.cassandra;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The locks of partitions; many partitions share a lock.
 *
 * <p>Writers of a partition exclude each other by the lock. Readers take none: a writer increments a counter before and
 * after it changes the pool, so a reader that finds the same even number before and after its calls has seen no partial
 * change.
 */
final class Stripes {
    private static final int COUNT = 1024;

    /** One of the locks. */
    static final class Stripe extends ReentrantLock {
        private static final long serialVersionUID = 1;

        private final AtomicLong changes = new AtomicLong();

        /** Returns the counter; even, unless a writer is changing a partition. */
        long changes() {
            return changes.get();
        }

        /** Runs a change of the pool; the calling thread holds the lock. */
        void change(Runnable change) {
            changes.incrementAndGet();
            try {
                change.run();
            } finally {
                changes.incrementAndGet();
            }
        }
    }

    private final Stripe[] stripes = new Stripe[COUNT];

    Stripes() {
        Arrays.setAll(stripes, i -> new Stripe());
    }

    Stripe of(byte[] partition) {
        int hash = Arrays.hashCode(partition);
        return stripes[(hash ^ hash >>> 16) & COUNT - 1];
    }
}

package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** When a number is counted again. */
class EstimateTest {
    private final AtomicLong counts = new AtomicLong();
    private final Estimate estimate = new Estimate();

    /** Returns the estimate at a size, and how many counts there were. */
    private String at(long size) {
        long number = estimate.at(size, () -> {
            counts.incrementAndGet();
            return size / 10;
        });
        return number + " by " + counts;
    }

    @Test
    void countsAgainWhenTheSizeHasChanged() {
        assertEquals("0 by 1", at(0));
        assertEquals("0 by 1", at(0));
        assertEquals("1 by 2", at(10));
        assertEquals("2 by 3", at(20));
        assertEquals("100 by 4", at(1_000));
        assertEquals("100 by 4", at(1_000));
        assertEquals("100 by 4", at(1_125));
        assertEquals("112 by 5", at(1_126));
        assertEquals("50 by 6", at(500));
    }

    /** Questions are as many as the writes, counts are few. */
    @Test
    void countsRarelyWhileTheSizeGrows() {
        for (long size = 1_000; size <= 1_000_000; size++) {
            estimate.at(size, counts::incrementAndGet);
        }
        assertEquals(59, counts.get());
    }
}

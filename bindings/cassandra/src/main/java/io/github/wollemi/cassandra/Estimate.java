package io.github.wollemi.cassandra;

import java.util.function.LongSupplier;

/**
 * A number that is expensive to count, as last counted. It is counted again when the size of what is counted has
 * changed by more than an eighth.
 */
final class Estimate {
    private static final int SHARE = 8;

    private long number;
    /** The size at the last count; negative: there was none. */
    private long counted = -1;

    /** Returns the number; counts it if the last count does not serve for a size. */
    synchronized long at(long size, LongSupplier count) {
        if (counted < 0 || Math.abs(size - counted) > counted / SHARE) {
            number = count.getAsLong();
            counted = size;
        }
        return number;
    }
}

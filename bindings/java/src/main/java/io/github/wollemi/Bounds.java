package io.github.wollemi;

import java.util.Arrays;

/** The bounds of a view, by the keys' bytes. A null bound is none. */
record Bounds(byte[] lower, boolean lowerInclusive, byte[] upper, boolean upperInclusive) {
    static final Bounds ALL = new Bounds(null, false, null, false);
    /** All keys, as a range from the empty key on: an index without an order refuses ranges. */
    static final Bounds ALL_IN_ORDER = from(new byte[0], true);

    static Bounds from(byte[] lower, boolean inclusive) {
        return new Bounds(lower.clone(), inclusive, null, false);
    }

    static Bounds to(byte[] upper, boolean inclusive) {
        return new Bounds(null, false, upper.clone(), inclusive);
    }

    /** Returns the bounds of exactly the keys with this prefix. */
    static Bounds prefix(byte[] prefix) {
        int last = prefix.length - 1;
        while (last >= 0 && prefix[last] == (byte) 0xff) {
            last--;
        }
        if (last < 0) {
            // No key is above all of these.
            return from(prefix, true);
        }
        byte[] after = Arrays.copyOf(prefix, last + 1);
        after[last]++;
        return new Bounds(prefix.clone(), true, after, false);
    }

    /** Returns the intersection with other bounds. */
    Bounds and(Bounds other) {
        boolean otherLower = lower == null || other.lower != null && isHigher(other, this);
        boolean otherUpper = upper == null || other.upper != null && isLower(other, this);
        Bounds low = otherLower ? other : this;
        Bounds high = otherUpper ? other : this;
        return new Bounds(low.lower, low.lowerInclusive, high.upper, high.upperInclusive);
    }

    private static boolean isHigher(Bounds a, Bounds b) {
        int order = Arrays.compareUnsigned(a.lower, b.lower);
        return order > 0 || order == 0 && !a.lowerInclusive;
    }

    private static boolean isLower(Bounds a, Bounds b) {
        int order = Arrays.compareUnsigned(a.upper, b.upper);
        return order < 0 || order == 0 && !a.upperInclusive;
    }

    boolean contains(byte[] key) {
        if (lower != null) {
            int order = Arrays.compareUnsigned(key, lower);
            if (order < 0 || order == 0 && !lowerInclusive) {
                return false;
            }
        }
        if (upper != null) {
            int order = Arrays.compareUnsigned(key, upper);
            return order < 0 || order == 0 && upperInclusive;
        }
        return true;
    }

    boolean isAll() {
        return lower == null && upper == null;
    }
}

package io.github.wollemi.cassandra;

import io.github.wollemi.WollemiException;

/**
 * A memtable could not serve a call of Cassandra. The message names the table, the pool, the reason, and what to do.
 */
public final class MemtableFailure extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Whether the write can never succeed. */
    private final boolean permanent;

    MemtableFailure(String message, Throwable cause) {
        this(message, cause, false);
    }

    private MemtableFailure(String message, Throwable cause, boolean permanent) {
        super(message, cause);
        this.permanent = permanent;
    }

    /** Refuses a write that no pool can take. */
    static MemtableFailure refusal(String message) {
        return new MemtableFailure(message, null, true);
    }

    /** Returns whether the same write would be refused again, whatever the state of the pool. */
    boolean isPermanent() {
        return permanent;
    }

    /** Returns whether the pool, or its disk, is full. */
    boolean isFull() {
        return getCause() instanceof WollemiException cause && cause.kind() == WollemiException.Kind.FULL;
    }

    /** Converts a failed call of the library. */
    static MemtableFailure of(Pool pool, String doing, WollemiException cause) {
        String advice = switch (cause.kind()) {
            case FULL -> "nothing was written; make room on the disk or flush the table";
            case UNFINISHED, NOT_DURABLE -> "restart the node: until then all writes to this pool fail";
            case DAMAGED -> "move the pool away and repair the table from its other replicas";
            default -> "nothing was written";
        };
        return new MemtableFailure(doing + " the memtable pool " + pool + " failed: " + cause.getMessage() + " (" + advice
                + ")", cause);
    }
}

package io.github.wollemi.cassandra;

import io.github.wollemi.WollemiException;

/**
 * A memtable could not serve a call of Cassandra. The message names the table, the pool, the reason, and what to do.
 */
public final class MemtableFailure extends RuntimeException {
    private static final long serialVersionUID = 1;

    MemtableFailure(String message, Throwable cause) {
        super(message, cause);
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

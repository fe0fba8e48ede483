package io.github.wollemi;

/**
 * Why a call on a database failed. Unless its {@link Kind} says otherwise, nothing was changed.
 *
 * <p>Three mistakes of the caller have exceptions of Java's own: {@link IllegalStateException} for what is closed,
 * {@link IllegalArgumentException} for keys, values and names that are too long and for maps of another database,
 * {@link UnsupportedOperationException} for ranges of a map whose index keeps no order.
 */
public class WollemiException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** What happened. */
    public enum Kind {
        /** The pool or the disk is full. Removes, and updates of eight-byte values, go on. */
        FULL,
        /** Another process, or this one, has the pool open; or a map cannot be dropped, since it is in use. */
        IN_USE,
        /** There is no such file, and it was not to be created. */
        MISSING,
        /** The pool is damaged. */
        DAMAGED,
        /** The pool cannot be opened, created or grown for another reason. */
        POOL,
        /** The database was opened to be read. */
        READ_ONLY,
        /** The map is held by another index than the one asked for, or one that this version does not know. */
        OTHER_INDEX,
        /** Something that a transaction has read was changed: {@link ConflictException}. */
        CONFLICT,
        /** The changes are committed; the next opening of the database completes them. Until then nothing can be written. */
        UNFINISHED,
        /** It has taken effect, and it is not known whether that survives a loss of power: the disk has failed. */
        NOT_DURABLE,
        /** A bounded snapshot would have to keep more than it may. Close it. */
        SNAPSHOT_OUTGROWN,
        /** The map holds values that were not put by an {@link ExpiringMap}. */
        NOT_EXPIRING,
        /** The native library has panicked: a bug, please report it. */
        PANIC,
        /** Another reason, which the message tells. */
        OTHER
    }

    /** What happened. */
    private final Kind kind;

    WollemiException(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    /**
     * What happened.
     *
     * @return its kind
     */
    public Kind kind() {
        return kind;
    }
}

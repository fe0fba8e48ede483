package io.github.wollemi;

/**
 * Why a call on a database failed. Unless its {@link Kind} says otherwise, nothing was changed.
 *
 * <p>Three kinds of mistakes of the caller give standard exceptions: {@link IllegalStateException} for closed objects,
 * {@link IllegalArgumentException} for keys, values and names that are too long and for maps of another database,
 * {@link UnsupportedOperationException} for ranges of a map whose index keeps no order.
 */
public class WollemiException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The reason of the failure. */
    public enum Kind {
        /** The pool or the disk is full. Removes, and updates of eight-byte values, still work. */
        FULL,
        /** Another process, or this one, has the pool open; or a map cannot be dropped because it is in use. */
        IN_USE,
        /** The file does not exist, and was not to be created. */
        MISSING,
        /** The pool is damaged. */
        DAMAGED,
        /** The pool cannot be opened, created or grown for another reason. */
        POOL,
        /** The database is opened read-only. */
        READ_ONLY,
        /** The map is held by a different index than requested, or one that this version does not know. */
        OTHER_INDEX,
        /** A key that a transaction has read was changed: {@link ConflictException}. */
        CONFLICT,
        /** The changes are committed; the next opening of the database completes them. Until then all writes fail. */
        UNFINISHED,
        /** The operation has taken effect, but may not survive a loss of power: the disk has failed. */
        NOT_DURABLE,
        /** A bounded snapshot has exceeded its memory limit. Close it. */
        SNAPSHOT_OUTGROWN,
        /** The map holds values that were not written through an {@link ExpiringMap}. */
        NOT_EXPIRING,
        /** The native library has panicked: a bug, please report it. */
        PANIC,
        /** Another reason; see the message. */
        OTHER
    }

    /** The reason. */
    private final Kind kind;

    WollemiException(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    /**
     * Returns the reason of the failure.
     *
     * @return its kind
     */
    public Kind kind() {
        return kind;
    }
}

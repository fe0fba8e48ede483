package io.github.wollemi;

/**
 * Thrown when a call on a database fails. The call has changed nothing, unless its {@link Kind} says otherwise.
 *
 * <p>Misuse throws standard exceptions: {@link IllegalStateException} (a closed object, a batch that is committed
 * twice, a cursor without a current entry), {@link IllegalArgumentException} (an invalid argument, such as a key that
 * is too long or a map of another database), {@link UnsupportedOperationException} (a range over an unordered index).
 */
public class WollemiException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The reason for the failure. */
    public enum Kind {
        /**
         * The pool, the disk or the log is full. If the pool is full, removes and updates of eight-byte values still
         * work; if the log or its disk is full, writes fail until there is room again.
         */
        FULL,
        /** Another process, or this one, has the pool open; or a map cannot be dropped because it is in use. */
        IN_USE,
        /** The file does not exist, and the options do not create it. */
        MISSING,
        /** The pool is damaged. */
        DAMAGED,
        /** The pool cannot be opened, created, grown or closed for another reason. */
        POOL,
        /** The database is opened read-only. */
        READ_ONLY,
        /** The map is held by a different index than requested, or one that this version does not know. */
        OTHER_INDEX,
        /** A key that a transaction has read was changed: {@link ConflictException}. */
        CONFLICT,
        /**
         * A committed transaction or batch could not be applied completely. The next opening of the database applies it
         * if there is room; until then every write fails with this kind.
         */
        UNFINISHED,
        /**
         * The operation has taken effect, or has read data, and that may not survive a loss of power: the disk has
         * failed.
         */
        NOT_DURABLE,
        /** A bounded snapshot has exceeded its memory limit. Close it. */
        SNAPSHOT_OUTGROWN,
        /** The map holds values that were not written through an {@link ExpiringMap}. */
        NOT_EXPIRING,
        /** The native library has panicked: a bug, please report it. The call may have taken effect. */
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
     * Returns the reason for the failure.
     *
     * @return its kind
     */
    public Kind kind() {
        return kind;
    }
}

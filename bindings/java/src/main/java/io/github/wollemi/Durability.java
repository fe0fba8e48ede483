package io.github.wollemi;

/**
 * When a write becomes durable, in a database of level {@link Level#DISK}. At other levels it is durable when it
 * returns.
 */
public enum Durability {
    /** When it returns. Writes that wait at the same time share one sync of the disk. */
    IMMEDIATE,
    /**
     * Within a bounded time ({@link Options#syncWithin}), or when a later {@link Database#sync} or immediate write
     * returns, if that is earlier. It survives the end of the process at once. Until it is durable, a loss of power can
     * take it back, even if other threads have read it.
     */
    EVENTUAL;

    byte[] text() {
        return Packed.utf8(Options.name(this));
    }

    /** Returns the name of a durability, which may be null. */
    static byte[] text(Durability durability) {
        return durability == null ? null : durability.text();
    }
}

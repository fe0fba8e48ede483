package io.github.wollemi;

/** When a write is durable, in a database of level {@link Level#DISK}. At other levels it is when it returns. */
public enum Durability {
    /** When it returns. Writes that wait at the same time share one sync of the disk. */
    IMMEDIATE,
    /**
     * Within a bounded time ({@link Options#syncWithin}), and when a later {@link Database#sync} or immediate write
     * returns. It survives the end of the process at once. Until it is durable, a loss of power takes it back, also from
     * those that have read it.
     */
    EVENTUAL;

    byte[] text() {
        return Packed.utf8(Options.name(this));
    }

    /** The name of one that may be null. */
    static byte[] text(Durability durability) {
        return durability == null ? null : durability.text();
    }
}

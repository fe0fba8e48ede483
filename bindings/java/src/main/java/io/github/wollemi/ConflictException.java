package io.github.wollemi;

/**
 * Another writer changed a key that a transaction had read before it committed. The transaction has changed nothing:
 * run it again, as {@link Database#transact} does by itself.
 */
public final class ConflictException extends WollemiException {
    private static final long serialVersionUID = 1;

    /** The name of the key's map. */
    private final String map;
    /** The key. */
    private final byte[] key;

    ConflictException(String message, String map, byte[] key) {
        super(Kind.CONFLICT, message);
        this.map = map;
        this.key = key;
    }

    /**
     * The map of the key.
     *
     * @return its name
     */
    public String map() {
        return map;
    }

    /**
     * The key that was changed. While another commit is about to change a key with the same hash, a key that was read.
     *
     * @return the key
     */
    public byte[] key() {
        return key.clone();
    }
}

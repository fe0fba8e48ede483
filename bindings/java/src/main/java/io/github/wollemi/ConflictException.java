package io.github.wollemi;

/**
 * Something that a transaction has read was changed by another writer before it was committed. It has changed nothing: run
 * it again, as {@link Database#transact} does by itself.
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
     * The key that was changed; or, while another commit is about to change a key of the same hash, one that was read.
     *
     * @return the key
     */
    public byte[] key() {
        return key.clone();
    }
}

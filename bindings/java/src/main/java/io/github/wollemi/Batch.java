package io.github.wollemi;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Changes to be made together: all of them or, whatever crash comes, none. Of several changes to one key the last is made.
 *
 * <p>Readers of maps do not wait for a batch that is being carried out, and may see it in part; {@link Snapshot}s show it
 * whole or not at all. A batch belongs to one thread at a time, and is kept on Java's heap until it is committed.
 *
 * <pre>{@code
 * boolean done = db.batch()
 *         .expect(stock, apples, twelve)
 *         .put(stock, apples, ten)
 *         .put(orders, one, twoApples)
 *         .commit();
 * }</pre>
 */
public final class Batch {
    private static final byte PUT = 0;
    private static final byte REMOVE = 1;
    private static final byte EXPECT = 2;

    private final Handle database;
    /** Operation, key and value by turns. */
    private final List<byte[]> operations = new ArrayList<>();
    /** Their maps are not closed before it is committed. */
    private final List<DurableMap> maps = new ArrayList<>();
    private Durability durability;
    private boolean committed;

    Batch(Handle database) {
        this.database = database;
    }

    /**
     * A key shall have a value, whether it is there or not.
     *
     * @param map the map
     * @param key the key
     * @param value its value
     * @return this batch
     */
    public Batch put(DurableMap map, byte[] key, byte[] value) {
        return add(PUT, map, key, value.clone());
    }

    /**
     * A key shall be absent.
     *
     * @param map the map
     * @param key the key
     * @return this batch
     */
    public Batch remove(DurableMap map, byte[] key) {
        return add(REMOVE, map, key, null);
    }

    /**
     * The batch is carried out only if, before it, a key has a value.
     *
     * @param map the map
     * @param key the key
     * @param value what it must hold; null: it must be absent
     * @return this batch
     */
    public Batch expect(DurableMap map, byte[] key, byte[] value) {
        return add(EXPECT, map, key, value == null ? null : value.clone());
    }

    private Batch add(byte what, DurableMap map, byte[] key, byte[] value) {
        refuseIfCommitted();
        // What can fail comes first: an operation is added whole, or not at all.
        byte[] operation = ByteBuffer.allocate(1 + Long.BYTES).put(what).putLong(map.handle.number()).array();
        byte[] copy = key.clone();
        operations.add(operation);
        operations.add(copy);
        operations.add(value);
        if (maps.isEmpty() || maps.get(maps.size() - 1) != map) {
            maps.add(map);
        }
        return this;
    }

    /**
     * Sets when it is durable, in a database of level {@link Level#DISK}.
     *
     * @param durability when
     * @return this batch
     */
    public Batch durability(Durability durability) {
        this.durability = durability;
        return this;
    }

    /**
     * How many operations it has, expectations included.
     *
     * @return their number
     */
    public int size() {
        return operations.size() / 3;
    }

    /**
     * Carries it out: it is durable when this returns. A batch is committed once.
     *
     * @return false, and nothing was changed, if something is not as it was expected
     */
    public boolean commit() {
        refuseIfCommitted();
        boolean done = database.commitBatch(database.number(), Packed.pack(operations), Durability.text(durability));
        committed = true;
        return done;
    }

    private void refuseIfCommitted() {
        if (committed) {
            throw new IllegalStateException("the batch was committed already");
        }
    }
}

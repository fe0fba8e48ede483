package io.github.wollemi;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Changes applied together: all of them or, whenever a crash comes, none. Of several changes to one key the last is
 * applied.
 *
 * <p>Readers of maps do not wait for a batch that is being committed, and may see it in part; {@link Snapshot}s show it
 * as a whole or not at all. A batch belongs to one thread at a time, and is kept on Java's heap until its commit.
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
    /** Operation, key and value, alternately. */
    private final List<byte[]> operations = new ArrayList<>();
    /** Keeps the maps from being garbage-collected, and so closed, before the commit. */
    private final List<DurableMap> maps = new ArrayList<>();
    private Durability durability;
    private boolean committed;

    Batch(Handle database) {
        this.database = database;
    }

    /**
     * Sets a key's value, whether or not the key is present.
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
     * Removes a key, if it is present.
     *
     * @param map the map
     * @param key the key
     * @return this batch
     */
    public Batch remove(DurableMap map, byte[] key) {
        return add(REMOVE, map, key, null);
    }

    /**
     * Makes the commit conditional on a key's value before it.
     *
     * @param map the map
     * @param key the key
     * @param value its expected value; null: it must be absent
     * @return this batch
     */
    public Batch expect(DurableMap map, byte[] key, byte[] value) {
        return add(EXPECT, map, key, value == null ? null : value.clone());
    }

    private Batch add(byte what, DurableMap map, byte[] key, byte[] value) {
        refuseIfCommitted();
        // Steps that can fail come first: an operation is added as a whole, or not at all.
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
     * Sets the batch's durability, in a database of level {@link Level#DISK}.
     *
     * @param durability the durability
     * @return this batch
     */
    public Batch durability(Durability durability) {
        this.durability = durability;
        return this;
    }

    /**
     * Returns the number of operations, including expectations.
     *
     * @return their number
     */
    public int size() {
        return operations.size() / 3;
    }

    /**
     * Commits the batch, which is durable when this returns. It can be committed once.
     *
     * @return false, with nothing changed, if an expectation does not hold
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

package io.github.wollemi;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.UnaryOperator;

/**
 * A named map of a {@link Database}. Every operation is atomic, and durable at the pool's level when it returns: its
 * result, a read's included, survives a crash.
 *
 * <p>Closing a map closes only this handle; closing its database closes all. Only {@link Database#dropMap} requires it.
 */
public final class DurableMap extends MapView implements WritableMap, AutoCloseable {
    /** Maximum number of keys per native call of {@link #multiGet}. */
    private static final int MANY = 1024;

    final Handle handle;
    private final String name;

    DurableMap(Handle handle, String name) {
        super(source(handle), Bounds.ALL, false);
        this.handle = handle;
        this.name = name;
    }

    private static Source source(Handle handle) {
        return new Source() {
            @Override
            public byte[] get(byte[] key) {
                return handle.get(handle.number(), key);
            }

            @Override
            public boolean containsKey(byte[] key) {
                return handle.contains(handle.number(), key);
            }

            @Override
            public List<byte[]> multiGet(List<byte[]> keys) {
                List<byte[]> values = new ArrayList<>(keys.size());
                // A call returns the values of at least one key, and of no more than fit.
                while (values.size() < keys.size()) {
                    int end = Math.min(keys.size(), values.size() + MANY);
                    byte[] some = Packed.pack(keys.subList(values.size(), end));
                    Packed found = new Packed(handle.multiGet(handle.number(), some));
                    while (found.hasNext()) {
                        values.add(found.next());
                    }
                }
                return values;
            }

            @Override
            public byte[] fetch(Bounds bounds, byte[] after, boolean reverse, int limit) {
                return handle.fetch(handle.number(), bounds.lower(), bounds.lowerInclusive(), bounds.upper(),
                        bounds.upperInclusive(), after, reverse, limit);
            }

            @Override
            public long count() {
                return handle.count(handle.number());
            }
        };
    }

    /**
     * Returns the map's name.
     *
     * @return its name
     */
    public String name() {
        return name;
    }

    /**
     * Returns the index that holds the map.
     *
     * @return the index's name
     */
    public String index() {
        return Packed.text(handle.indexOf(handle.number()));
    }

    /**
     * Returns whether the map's index orders its keys. Without an order, a map supports single keys, and a cursor over
     * all of them in the index's own order; a snapshot and a transaction support only single keys.
     *
     * @return whether it does
     */
    public boolean isOrdered() {
        return handle.isOrdered(handle.number());
    }

    /**
     * Returns a handle to the same map whose writes have a durability, in a database of level {@link Level#DISK}.
     *
     * @param durability the durability
     * @return another handle
     */
    public DurableMap withDurability(Durability durability) {
        long other = handle.withDurability(handle.number(), durability.text());
        return new DurableMap(new Handle(other, "map '" + name + "'", handle, false), name);
    }

    @Override
    public int get(ByteBuffer key, ByteBuffer into) {
        if (!into.isDirect() || into.isReadOnly()) {
            return WritableMap.super.get(key, into);
        }
        Buffers.touch(into);
        int length = handle.getInto(handle.number(), Buffers.unlessDirect(key), Buffers.ifDirect(key), key.position(),
                key.remaining(), into, into.position(), into.remaining());
        if (length > 0 && length <= into.remaining()) {
            into.position(into.position() + length);
        }
        return length;
    }

    @Override
    public void put(byte[] key, byte[] value) {
        handle.put(handle.number(), key, value);
    }

    @Override
    public void put(ByteBuffer key, ByteBuffer value) {
        handle.putFrom(handle.number(), Buffers.unlessDirect(key), Buffers.ifDirect(key), key.position(), key.remaining(),
                Buffers.unlessDirect(value), Buffers.ifDirect(value), value.position(), value.remaining());
    }

    @Override
    public boolean putIfAbsent(byte[] key, byte[] value) {
        return handle.putIfAbsent(handle.number(), key, value);
    }

    @Override
    public boolean replace(byte[] key, byte[] value) {
        return handle.replace(handle.number(), key, value);
    }

    @Override
    public boolean compareAndSet(byte[] key, byte[] expected, byte[] value) {
        return handle.compareAndSet(handle.number(), key, expected, value);
    }

    @Override
    public boolean remove(byte[] key) {
        return handle.remove(handle.number(), key);
    }

    /**
     * Replaces a key's value by the result of a function, atomically. The function runs again if another writer changes
     * the key meanwhile, so it should have no side effects.
     *
     * @param key the key
     * @param function from the value (null if the key is absent) to the new one (null: remove the key)
     * @return the new value
     */
    public byte[] compute(byte[] key, UnaryOperator<byte[]> function) {
        Objects.requireNonNull(function);
        while (true) {
            byte[] current = get(key);
            byte[] value = function.apply(current == null ? null : current.clone());
            if (compareAndSet(key, current, value)) {
                return value;
            }
        }
    }

    @Override
    public void close() {
        handle.close();
    }

    @Override
    public String toString() {
        return "map '" + name + "'";
    }
}

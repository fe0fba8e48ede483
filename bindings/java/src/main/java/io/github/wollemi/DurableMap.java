package io.github.wollemi;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.UnaryOperator;

/**
 * A named map of a {@link Database}. Every operation is atomic, and durable at the pool's level when it returns: what it
 * has acknowledged, reads included, survives a crash.
 *
 * <p>Closing a map closes this handle, and no other one; closing its database closes all. Only
 * {@link Database#dropMap} asks for it.
 */
public final class DurableMap extends MapView implements WritableMap, AutoCloseable {
    /** Keys of one call. */
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
                // A call gives the values of as many keys as it likes, and of one at least.
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
     * The map's name.
     *
     * @return its name
     */
    public String name() {
        return name;
    }

    /**
     * Which index holds the map.
     *
     * @return the index's name
     */
    public String index() {
        return Packed.text(handle.indexOf(handle.number()));
    }

    /**
     * Whether the map's index keeps an order of keys. Without one there are single keys, and a cursor over all of them, in
     * an order of its own; a snapshot and a transaction have single keys alone.
     *
     * @return whether it does
     */
    public boolean isOrdered() {
        return handle.isOrdered(handle.number());
    }

    /**
     * A handle of the same map whose writes are durable as asked for, in a database of level {@link Level#DISK}.
     *
     * @param durability when they are durable
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
     * Replaces the value of a key by what a function makes of it, atomically. The function runs again where another
     * writer has changed the key meanwhile, so it should have no effect but its result.
     *
     * @param key the key
     * @param function from the value (null if the key is absent) to the new one (null: the key shall be absent)
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

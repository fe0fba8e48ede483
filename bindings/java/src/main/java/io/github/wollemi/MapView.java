package io.github.wollemi;

import java.util.ArrayList;
import java.util.List;

/** The entries of a source between two bounds, in one of two orders. */
class MapView implements ReadableMap {
    private final Source source;
    private final Bounds bounds;
    private final boolean descending;

    MapView(Source source, Bounds bounds, boolean descending) {
        this.source = source;
        this.bounds = bounds;
        this.descending = descending;
    }

    @Override
    public byte[] get(byte[] key) {
        return bounds.contains(key) ? source.get(key) : null;
    }

    @Override
    public boolean containsKey(byte[] key) {
        return bounds.contains(key) && source.containsKey(key);
    }

    @Override
    public List<byte[]> multiGet(List<byte[]> keys) {
        if (bounds.isAll()) {
            return source.multiGet(keys);
        }
        List<byte[]> inside = new ArrayList<>();
        for (byte[] key : keys) {
            if (bounds.contains(key)) {
                inside.add(key);
            }
        }
        var found = source.multiGet(inside).iterator();
        List<byte[]> values = new ArrayList<>(keys.size());
        for (byte[] key : keys) {
            values.add(bounds.contains(key) ? found.next() : null);
        }
        return values;
    }

    @Override
    public Entry firstEntry() {
        return end(descending);
    }

    @Override
    public Entry lastEntry() {
        return end(!descending);
    }

    private Entry end(boolean reverse) {
        Packed batch = new Packed(source.fetch(bounds.and(Bounds.ALL_IN_ORDER), null, reverse, 1));
        batch.next();
        return batch.hasNext() ? new Entry(batch.next(), batch.next()) : null;
    }

    @Override
    public ReadableMap headMap(byte[] to, boolean inclusive) {
        return part(descending ? Bounds.from(to, inclusive) : Bounds.to(to, inclusive));
    }

    @Override
    public ReadableMap tailMap(byte[] from, boolean inclusive) {
        return part(descending ? Bounds.to(from, inclusive) : Bounds.from(from, inclusive));
    }

    @Override
    public ReadableMap prefixMap(byte[] prefix) {
        return part(Bounds.prefix(prefix));
    }

    private ReadableMap part(Bounds other) {
        return new MapView(source, bounds.and(other), descending);
    }

    @Override
    public ReadableMap descendingMap() {
        return new MapView(source, bounds, !descending);
    }

    @Override
    public long count() {
        long counted = bounds.isAll() ? source.count() : -1;
        if (counted >= 0) {
            return counted;
        }
        Cursor cursor = cursor();
        for (counted = 0; cursor.advance(); counted++) {}
        return counted;
    }

    @Override
    public boolean isEmpty() {
        Packed batch = new Packed(source.fetch(bounds, null, descending, 1));
        batch.next();
        return !batch.hasNext();
    }

    @Override
    public Cursor cursor() {
        return new Cursor(source, bounds, descending);
    }
}

package io.github.wollemi.bench;

import io.github.wollemi.Cursor;
import io.github.wollemi.Database;
import io.github.wollemi.DurableMap;
import io.github.wollemi.Options;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.Map;
import org.lmdbjava.CursorIterable;
import org.lmdbjava.Dbi;
import org.lmdbjava.DbiFlags;
import org.lmdbjava.Env;
import org.lmdbjava.EnvFlags;
import org.lmdbjava.KeyRange;
import org.lmdbjava.Txn;
import org.mapdb.BTreeMap;
import org.mapdb.DB;
import org.mapdb.DBMaker;
import org.mapdb.Serializer;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;

/**
 * The store under test, used as each binding's manual shows. Each write is separate. After {@code kill -9}, written
 * data is present with Wollemi (level process), RocksDB (its log, not synced) and LMDB (a commit, not synced); with
 * MapDB (a mapped file without its log, which syncs at every commit) it may be damaged.
 */
interface Store extends AutoCloseable {
    byte[] get(byte[] key) throws Exception;

    void put(byte[] key, byte[] value) throws Exception;

    /** Visits entries from a key on; returns the bytes of their values. */
    long scan(byte[] from, int entries) throws Exception;

    static Store open(String name, Path folder) throws Exception {
        return switch (name) {
            case "wollemi" -> new Wollemi(folder);
            case "rocksdb" -> new Rocks(folder);
            case "lmdb" -> new Lmdb(folder);
            case "mapdb" -> new MapDb(folder);
            default -> throw new IllegalArgumentException(name);
        };
    }

    final class Wollemi implements Store {
        private final Database db;
        private final DurableMap map;

        Wollemi(Path folder) {
            db = Database.open(folder.resolve("bench.pool"), Options.DEFAULT.maxSize(16L << 30));
            map = db.map("bench");
        }

        @Override
        public byte[] get(byte[] key) {
            return map.get(key);
        }

        @Override
        public void put(byte[] key, byte[] value) {
            map.put(key, value);
        }

        @Override
        public long scan(byte[] from, int entries) {
            long bytes = 0;
            Cursor cursor = map.tailMap(from, true).cursor();
            for (int i = 0; i < entries && cursor.advance(); i++) {
                bytes += cursor.value().remaining();
            }
            return bytes;
        }

        @Override
        public void close() {
            db.close();
        }
    }

    final class Rocks implements Store {
        private final RocksDB db;

        Rocks(Path folder) throws RocksDBException {
            RocksDB.loadLibrary();
            db = RocksDB.open(folder.toString());
        }

        @Override
        public byte[] get(byte[] key) throws RocksDBException {
            return db.get(key);
        }

        @Override
        public void put(byte[] key, byte[] value) throws RocksDBException {
            db.put(key, value);
        }

        @Override
        public long scan(byte[] from, int entries) {
            long bytes = 0;
            try (RocksIterator iterator = db.newIterator()) {
                iterator.seek(from);
                for (int i = 0; i < entries && iterator.isValid(); i++) {
                    bytes += iterator.value().length;
                    iterator.next();
                }
            }
            return bytes;
        }

        @Override
        public void close() {
            db.close();
        }
    }

    final class Lmdb implements Store {
        private final Env<ByteBuffer> env;
        private final Dbi<ByteBuffer> dbi;
        private final ByteBuffer keys = ByteBuffer.allocateDirect(64);
        private final ByteBuffer values = ByteBuffer.allocateDirect(1 << 16);

        Lmdb(Path folder) {
            env = Env.create().setMapSize(16L << 30).open(folder.toFile(), EnvFlags.MDB_NOSYNC, EnvFlags.MDB_WRITEMAP);
            dbi = env.openDbi("bench", DbiFlags.MDB_CREATE);
        }

        private static ByteBuffer fill(ByteBuffer buffer, byte[] bytes) {
            return buffer.clear().put(bytes).flip();
        }

        @Override
        public byte[] get(byte[] key) {
            try (Txn<ByteBuffer> txn = env.txnRead()) {
                ByteBuffer found = dbi.get(txn, fill(keys, key));
                byte[] value = new byte[found.remaining()];
                found.get(value);
                return value;
            }
        }

        @Override
        public void put(byte[] key, byte[] value) {
            dbi.put(fill(keys, key), fill(values, value));
        }

        @Override
        public long scan(byte[] from, int entries) {
            long bytes = 0;
            try (Txn<ByteBuffer> txn = env.txnRead();
                    CursorIterable<ByteBuffer> found = dbi.iterate(txn, KeyRange.atLeast(fill(keys, from)))) {
                Iterator<CursorIterable.KeyVal<ByteBuffer>> iterator = found.iterator();
                for (int i = 0; i < entries && iterator.hasNext(); i++) {
                    bytes += iterator.next().val().remaining();
                }
            }
            return bytes;
        }

        @Override
        public void close() {
            env.close();
        }
    }

    final class MapDb implements Store {
        private final DB db;
        private final BTreeMap<byte[], byte[]> map;

        MapDb(Path folder) throws IOException {
            db = DBMaker.fileDB(folder.resolve("bench.mapdb").toFile()).fileMmapEnable().make();
            map = db.treeMap("bench", Serializer.BYTE_ARRAY, Serializer.BYTE_ARRAY).valuesOutsideNodesEnable()
                    .createOrOpen();
        }

        @Override
        public byte[] get(byte[] key) {
            return map.get(key);
        }

        @Override
        public void put(byte[] key, byte[] value) {
            map.put(key, value);
        }

        @Override
        public long scan(byte[] from, int entries) {
            long bytes = 0;
            Iterator<Map.Entry<byte[], byte[]>> iterator = map.entryIterator(from, true, null, true);
            for (int i = 0; i < entries && iterator.hasNext(); i++) {
                bytes += iterator.next().getValue().length;
            }
            return bytes;
        }

        @Override
        public void close() {
            db.close();
        }
    }
}

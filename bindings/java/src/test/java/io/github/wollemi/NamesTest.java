package io.github.wollemi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A path's file is the same for Java and for the native library, and different names are different maps. */
class NamesTest {
    private static final byte[] KEY = Bytes.of("key");

    @TempDir
    Path folder;

    /** Opens each file of the current folder, writes the key to its map, and prints how many it opened. */
    public static final class EachFile {
        public static void main(String[] args) throws Exception {
            int opened = 0;
            try (var files = Files.newDirectoryStream(Path.of(""))) {
                for (Path file : files) {
                    try (Database db = Database.open(file)) {
                        db.map("m").put(KEY, KEY);
                    }
                    opened++;
                }
            }
            System.out.println("opened " + opened);
        }
    }

    /** Returns the path of a file whose name is given percent-encoded, whatever this process' locale is. */
    private Path file(String name) {
        return Path.of(URI.create(folder.toUri() + name));
    }

    /** Returns the names of the folder's files, percent-encoded. */
    private List<String> names() throws Exception {
        int length = folder.toUri().toString().length();
        try (var files = Files.list(folder)) {
            return files.map(file -> file.toUri().toString().substring(length)).sorted().toList();
        }
    }

    /** A path from a listing of a folder opens the listed file in every locale. */
    @ParameterizedTest
    @ValueSource(strings = {"C", "C.UTF-8"})
    void aListedPathOpensThatFile(String locale) throws Exception {
        // The last one is also the name of a folder in the root.
        List<String> pools = List.of("%25+.pool", "a%20b.pool", "prix-%C3%A9.pool", "tmp");
        for (String pool : pools) {
            Database.open(file(pool)).close();
        }
        ProcessBuilder child = Child.java(folder, List.of(EachFile.class.getName()));
        child.environment().put("LC_ALL", locale);
        assertEquals("opened " + pools.size(), Child.say(child).strip());
        assertEquals(pools, names());
        for (String pool : pools) {
            try (Database db = Database.open(file(pool))) {
                assertEquals(1, db.map("m").count(), pool);
            }
        }
    }

    /** A path whose bytes are not UTF-8 is refused, and no other file is created in its place. */
    @Test
    void aPathThatIsNotUtf8IsRefused() throws Exception {
        Path latin1 = file("prix-%E9.pool");
        assertThrows(IllegalArgumentException.class, () -> Database.open(latin1));
        assertEquals(List.of(), names());
    }

    /** Half a surrogate pair has no UTF-8. As a question mark it would name another map. */
    @Test
    void aNameWithHalfASurrogatePairIsRefused() {
        try (Database db = Database.inMemory(Options.DEFAULT)) {
            assertThrows(IllegalArgumentException.class, () -> db.map("\ud800"));
            assertThrows(IllegalArgumentException.class, () -> db.findMap("a\udc00"));
            db.map("\ud83c\udf32").close();
            assertEquals(List.of(new MapInfo("\ud83c\udf32", "roart")), db.maps());
        }
    }
}

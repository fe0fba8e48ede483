package io.github.wollemi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How the native library is found, and which libraries are refused. */
class LibraryTest {
    @TempDir
    Path folder;

    /** Run by the tests below. */
    public static final class Versions {
        public static void main(String[] args) {
            System.out.println(Database.version());
        }
    }

    private String versions(String... options) throws Exception {
        var arguments = new java.util.ArrayList<>(List.of(options));
        arguments.add(Versions.class.getName());
        return Child.say(Child.java(folder, arguments)).strip();
    }

    @Test
    void theVersionsAreInStep() throws Exception {
        assertEquals(Library.version(), Database.version());
        String workspace = Files.readString(Path.of("../../Cargo.toml"));
        assertTrue(workspace.contains("[workspace.package]\nversion = \"" + Library.version() + "\""),
                "the jar has version " + Library.version() + ", and Wollemi another");
    }

    @Test
    void theJarListsTheCratesInItWithTheirLicences() throws Exception {
        try (var list = Library.class.getResourceAsStream("native/linux-x86-64/bom.json")) {
            String crates = Packed.text(list.readAllBytes());
            assertTrue(crates.contains("\"name\": \"wollemi\", \"version\": \"" + Library.version() + "\""), crates);
            assertTrue(crates.contains("pkg:cargo/jni@"), crates);
        }
        try (var texts = Library.class.getResourceAsStream("native/linux-x86-64/LICENSES-THIRD-PARTY.txt")) {
            String licences = Packed.text(texts.readAllBytes());
            assertTrue(licences.contains("\n  jni "), "the licence of a crate is missing");
            assertTrue(licences.contains("The Rust Standard Library"), "the standard library's notices are missing");
        }
    }

    @Test
    void theCopyIsGoneOnceItIsLoaded() throws Exception {
        Path temporary = Files.createDirectory(folder.resolve("tmp"));
        assertEquals(Library.version(), versions("-Djava.io.tmpdir=" + temporary));
        try (var left = Files.list(temporary)) {
            assertEquals(List.of(), left.filter(file -> file.toString().contains("wollemi")).toList());
        }
    }

    @Test
    void aPropertyNamesAnother() throws Exception {
        Path copy = folder.resolve("another.so");
        try (var library = Library.class.getResourceAsStream("native/linux-x86-64/libwollemi_java.so")) {
            Files.copy(library, copy);
        }
        assertEquals(Library.version(), versions("-Dwollemi.library=" + copy));
        assertEquals(Library.version(), versions("-Dwollemi.library=another.so"));
        String said = versions("-Dwollemi.library=none.so");
        assertTrue(said.contains("UnsatisfiedLinkError") && said.contains("none.so"), said);
    }

    @Test
    void anotherVersionIsRefused() {
        var refused = assertThrows(UnsatisfiedLinkError.class, () -> Library.check("x.so", "1.2.3", "1.2.4"));
        assertEquals("wollemi: the jar has version 1.2.3, and the native library x.so has version 1.2.4: use both of one"
                + " version", refused.getMessage());
    }

    @Test
    void platformsHaveNames() {
        assertEquals("linux-x86-64", Library.platform("Linux", "amd64"));
        assertEquals("linux-x86-64", Library.platform("Linux", "x86_64"));
        assertEquals("linux-aarch64", Library.platform("Linux", "aarch64"));
    }
}

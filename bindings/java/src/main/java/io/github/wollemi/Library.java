package io.github.wollemi;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * The native library, loaded from the path in property {@code wollemi.library}, or else from the jar, by way of a
 * temporary file that is deleted after loading.
 */
final class Library {
    static final String PROPERTY = "wollemi.library";

    private Library() {}

    /** Loads it; {@link #check} must follow. Returns where it was loaded from. */
    static String load() {
        String given = System.getProperty(PROPERTY);
        if (given != null) {
            System.load(Path.of(given).toAbsolutePath().toString());
            return given;
        }
        String platform = platform(System.getProperty("os.name"), System.getProperty("os.arch"));
        String name = "native/" + platform + "/libwollemi_java.so";
        try (InputStream library = Library.class.getResourceAsStream(name)) {
            if (library == null) {
                throw new UnsatisfiedLinkError("wollemi: the jar has no native library for " + platform
                        + "; build one from bindings/java/native and name it by -D" + PROPERTY);
            }
            Path copy = Files.createTempFile("libwollemi_java", ".so");
            // The loader keeps the file mapped. If copying or loading fails, an error of the deletion is suppressed.
            try (Deletion deletion = new Deletion(copy)) {
                Files.copy(library, deletion.file(), StandardCopyOption.REPLACE_EXISTING);
                System.load(deletion.file().toString());
            }
        } catch (IOException error) {
            throw new UncheckedIOException("wollemi: cannot copy the native library to "
                    + System.getProperty("java.io.tmpdir") + "; name one by -D" + PROPERTY, error);
        }
        return name;
    }

    /** Deletes a file when it is closed; one that is gone already is no error. */
    private record Deletion(Path file) implements Closeable {
        @Override
        public void close() throws IOException {
            Files.deleteIfExists(file);
        }
    }

    /** Returns the name of a platform, as used for the jar's folders. */
    static String platform(String os, String arch) {
        String processor = arch.equals("amd64") ? "x86-64" : arch.replace('_', '-');
        return os.toLowerCase(Locale.ROOT) + "-" + processor;
    }

    /** Refuses a library whose version differs from the jar's. */
    static void check(String place, String jar, String library) {
        if (!jar.equals(library)) {
            throw new UnsatisfiedLinkError("wollemi: the jar has version " + jar + ", and the native library " + place
                    + " has version " + library + ": use both of one version");
        }
    }

    /** Returns the jar's version. */
    static String version() {
        try (InputStream version = Library.class.getResourceAsStream("version")) {
            return version == null ? "unknown" : Packed.text(version.readAllBytes()).strip();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}

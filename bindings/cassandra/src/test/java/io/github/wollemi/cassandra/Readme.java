package io.github.wollemi.cassandra;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** What the README tells its readers to type. */
final class Readme {
    private Readme() {}

    /** Returns the first block of code in a language. */
    static String block(String language) {
        String begin = "```" + language + "\n";
        try {
            String page = Files.readString(Path.of("README.md"));
            int at = page.indexOf(begin) + begin.length();
            return page.substring(at, page.indexOf("```", at));
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }
}

package io.github.wollemi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The README's programs run as written, and print the output shown beside them. */
class FirstProgramTest {
    @TempDir
    Path folder;

    /** A program, and the content of the next text block. */
    private static final Pattern PROGRAM = Pattern.compile("```java\n(.*?)```\n.*?```text\n(.*?)```", Pattern.DOTALL);

    @Test
    void programsPrintWhatTheReadmeSays() throws Exception {
        Matcher programs = PROGRAM.matcher(Files.readString(Path.of("README.md")));
        int run = 0;
        while (programs.find()) {
            String program = programs.group(1);
            Matcher name = Pattern.compile("class (\\w+)").matcher(program);
            assertTrue(name.find(), program);
            Files.writeString(folder.resolve(name.group(1) + ".java"), program);
            String said = Child.say(Child.java(folder, List.of(name.group(1) + ".java")));
            assertEquals(programs.group(2), said);
            if (run++ == 0) {
                assertTrue(program.lines().count() <= 10, "the first one has ten lines");
            }
        }
        assertTrue(run >= 2, run + " programs");
    }
}

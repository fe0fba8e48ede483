package io.github.wollemi;

import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Processes of the same Java, with the classes of the library and of the tests. */
final class Child {
    private Child() {}

    private static String place(Class<?> of) {
        try {
            return Path.of(of.getProtectionDomain().getCodeSource().getLocation().toURI()).toString();
        } catch (URISyntaxException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Returns a builder that runs {@code java} with these arguments in a folder. */
    static ProcessBuilder java(Path folder, List<String> arguments) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("-Xmx128m");
        command.add("-cp");
        command.add(place(Database.class) + ":" + place(Child.class));
        command.addAll(arguments);
        return new ProcessBuilder(command).directory(folder.toFile());
    }

    /** Returns the output of a process, including errors, until it ends. */
    static String say(ProcessBuilder java) throws IOException, InterruptedException {
        Process process = java.redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        process.waitFor();
        return said;
    }
}

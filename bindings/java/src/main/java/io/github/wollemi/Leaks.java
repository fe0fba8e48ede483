package io.github.wollemi;

import java.util.Objects;
import java.util.function.Consumer;

/**
 * Reports objects that were never closed. A {@link Database}, a {@link Snapshot}, a {@link Transaction} or a {@link
 * Sweeper} that the garbage collector finds unclosed is closed then, and reported: by default as a warning to the
 * {@link System.Logger} {@code io.github.wollemi}. With {@code -Dwollemi.leaks.trace=true}, reports include the stack
 * trace of the opening, at the cost of creating one at each opening.
 *
 * <p>Maps, batches and cursors need not be closed: they are not reported.
 */
public final class Leaks {
    private static final boolean TRACE = Boolean.getBoolean("wollemi.leaks.trace");
    private static final Consumer<Leak> WARN = leak -> System.getLogger("io.github.wollemi")
            .log(System.Logger.Level.WARNING, leak + " was never closed", leak.opened());

    private static volatile Consumer<Leak> listener = WARN;

    private Leaks() {}

    /**
     * An object that was never closed.
     *
     * @param what its description
     * @param opened the stack trace of its opening; null unless {@code wollemi.leaks.trace} is set
     */
    public record Leak(String what, Throwable opened) {
        @Override
        public String toString() {
            return what;
        }
    }

    /**
     * Sets the listener for leaks. It runs on the cleaner's thread, so it should be short.
     *
     * @param listener the listener; null for the default, which logs a warning
     */
    public static void listen(Consumer<Leak> listener) {
        Leaks.listener = Objects.requireNonNullElse(listener, WARN);
    }

    /** Returns the stack trace to keep for an object opened now. */
    static Throwable trace() {
        return TRACE ? new Throwable("opened here") : null;
    }

    static void report(String what, Throwable opened) {
        listener.accept(new Leak(what, opened));
    }
}

package io.github.wollemi;

import java.util.Objects;
import java.util.function.Consumer;

/**
 * Tells of what was never closed. A {@link Database}, a {@link Snapshot}, a {@link Transaction} or a {@link Sweeper} that
 * the garbage collector finds unclosed is closed then, and reported: by default as a warning to the
 * {@link System.Logger} {@code io.github.wollemi}. With {@code -Dwollemi.leaks.trace=true} reports have the stack trace of
 * where it was opened, at the cost of making one at each opening.
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
     * Something that was never closed.
     *
     * @param what what it is
     * @param opened where it was opened; null unless {@code wollemi.leaks.trace} is set
     */
    public record Leak(String what, Throwable opened) {
        @Override
        public String toString() {
            return what;
        }
    }

    /**
     * Has leaks told to a listener. It runs on the thread that cleans up, so it should be short.
     *
     * @param listener the listener; null for the default, which warns
     */
    public static void listen(Consumer<Leak> listener) {
        Leaks.listener = Objects.requireNonNullElse(listener, WARN);
    }

    /** The stack trace to keep with what is opened now. */
    static Throwable trace() {
        return TRACE ? new Throwable("opened here") : null;
    }

    static void report(String what, Throwable opened) {
        listener.accept(new Leak(what, opened));
    }
}

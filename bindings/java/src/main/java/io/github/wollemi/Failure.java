package io.github.wollemi;

/** Creates the exceptions for failures of the native library. */
final class Failure {
    private Failure() {}

    /** Called by the native library. {@code map} and {@code key} are null except for conflicts. */
    static RuntimeException of(String kind, String message, String map, byte[] key) {
        return switch (kind) {
            case "closed" -> new IllegalStateException(message);
            case "argument" -> new IllegalArgumentException(message);
            case "unsupported" -> new UnsupportedOperationException(message);
            case "conflict" -> new ConflictException(message, map, key);
            default -> new WollemiException(WollemiException.Kind.valueOf(kind), message);
        };
    }
}

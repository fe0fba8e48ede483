package io.github.wollemi;

/** The failures that acknowledged operations survive. */
public enum Level {
    /** The end of the process, for whatever reason; any file supports it. */
    PROCESS,
    /**
     * Also a crash of the kernel and a loss of power, on any file system with a working {@code fdatasync}, by a log and
     * checkpoints beside the pool.
     */
    DISK,
    /** The same on persistent memory: a DAX file, mapped with {@code MAP_SYNC}, which needs no log. */
    POWER
}

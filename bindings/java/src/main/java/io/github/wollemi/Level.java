package io.github.wollemi;

/** What acknowledged operations survive. */
public enum Level {
    /** The end of the process, however it comes: any file will do. */
    PROCESS,
    /**
     * Also a crash of the kernel and the loss of power, on any file system with a working {@code fdatasync}: a log and
     * checkpoints stand beside the pool.
     */
    DISK,
    /** The same on persistent memory: a DAX file, mapped with {@code MAP_SYNC}, which needs no log. */
    POWER
}

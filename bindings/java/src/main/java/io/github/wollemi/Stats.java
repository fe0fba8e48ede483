package io.github.wollemi;

import java.time.Duration;

/**
 * A database at one moment.
 *
 * @param uuid the pool's identity
 * @param level the durability level: {@code process}, {@code disk} or {@code power}
 * @param lastShutdown how the pool was left before: {@code new}, {@code clean}, {@code process crash} or
 *     {@code machine crash}
 * @param recovery where the search for unused space stands: {@code idle}, {@code running}, {@code done} or
 *     {@code failed: …}
 * @param openings how often the pool was opened to be written
 * @param crashes how often it was not closed properly
 * @param maxSize the size to which the pool may grow, in bytes
 * @param openedIn how long opening took
 * @param reserved bytes of the pool
 * @param used bytes in use
 * @param free bytes ready for use
 * @param unswept bytes of pages in which recovery has yet to tell used from free
 * @param objects objects in use, outside of these pages
 * @param json all of this and more (the log's figures, merges), as {@code wollemi stats --json} prints it
 */
public record Stats(String uuid, String level, String lastShutdown, String recovery, long openings, long crashes,
        long maxSize, Duration openedIn, long reserved, long used, long free, long unswept, long objects, String json) {

    static Stats of(byte[] bytes) {
        Packed packed = new Packed(bytes);
        return new Stats(packed.text(), packed.text(), packed.text(), packed.text(), packed.number(), packed.number(),
                packed.number(), Duration.ofNanos(packed.number()), packed.number(), packed.number(), packed.number(),
                packed.number(), packed.number(), packed.text());
    }
}

package io.github.wollemi;

import java.time.Duration;

/**
 * Statistics of a database at one moment.
 *
 * @param uuid the pool's identity
 * @param level the durability level: {@code process}, {@code disk} or {@code power}
 * @param lastShutdown how the pool was left before: {@code new}, {@code clean}, {@code process crash} or
 *     {@code machine crash}
 * @param recovery the state of the search for unused space: {@code idle}, {@code running}, {@code done} or
 *     {@code failed: …}
 * @param openings number of times the pool was opened to write
 * @param crashes number of times it was not closed properly
 * @param maxSize the maximum size of the pool, in bytes
 * @param openedIn duration of the opening
 * @param reserved bytes of the pool
 * @param used bytes in use
 * @param free free bytes
 * @param unswept bytes of pages that recovery has not yet swept
 * @param objects objects in use, not counting those pages
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

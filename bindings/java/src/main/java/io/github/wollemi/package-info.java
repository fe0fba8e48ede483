/**
 * Wollemi: an embedded, ordered, persistent key-value store that is up again the instant it is reopened, after a clean
 * close as after {@code kill -9}.
 *
 * <p>A {@link io.github.wollemi.Database} is one file, the pool, with named maps ({@link io.github.wollemi.DurableMap})
 * from keys to values, both any bytes, ordered by the keys' bytes as unsigned numbers. Every operation is durable at the
 * pool's {@link io.github.wollemi.Level} when it returns. Several keys change together in a
 * {@link io.github.wollemi.Batch} or a {@link io.github.wollemi.Transaction}; a {@link io.github.wollemi.Snapshot} shows
 * all maps as they were at one moment.
 *
 * <p>Many threads may use all classes at once, except for {@link io.github.wollemi.Batch} and {@link
 * io.github.wollemi.Cursor}, which belong to one thread at a time. Reads take no locks. A closed object throws {@link
 * java.lang.IllegalStateException}, whichever thread has closed it.
 *
 * <p>Arrays and buffers passed to a call are copied before it returns, and those it returns belong to the caller.
 * Arguments must not be null unless their documentation says so.
 */
package io.github.wollemi;

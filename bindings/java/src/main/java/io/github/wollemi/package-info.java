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
 * <p>All classes may be used from many threads at once, but for {@link io.github.wollemi.Batch} and
 * {@link io.github.wollemi.Cursor}, which belong to one thread at a time. Reads take no locks. What is closed throws
 * {@link java.lang.IllegalStateException}, whichever thread has closed it.
 *
 * <p>Arrays and buffers that are given to a call are copied before it returns, and those that it returns are the caller's.
 * No argument may be null where its documentation does not say so.
 */
package io.github.wollemi;

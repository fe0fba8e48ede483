/**
 * A memtable for Apache Cassandra 5.0 that keeps its rows in a Wollemi pool instead of on Java's heap.
 *
 * <p>The node's configuration names {@link io.github.wollemi.cassandra.WollemiMemtable}.
 */
package io.github.wollemi.cassandra;

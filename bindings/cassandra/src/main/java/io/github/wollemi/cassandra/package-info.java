/**
 * A memtable for Apache Cassandra 5.0 whose rows are kept in a Wollemi pool instead of on Java's heap.
 *
 * <p>{@link io.github.wollemi.cassandra.WollemiMemtable} is what the node's configuration names.
 */
package io.github.wollemi.cassandra;

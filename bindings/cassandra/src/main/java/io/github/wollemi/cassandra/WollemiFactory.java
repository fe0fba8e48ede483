package io.github.wollemi.cassandra;

import java.util.concurrent.atomic.AtomicReference;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.schema.SchemaConstants;
import org.apache.cassandra.schema.TableMetadataRef;

/**
 * Creates the memtables of tables with one configuration, and reports their properties to Cassandra.
 *
 * @param settings the configuration
 */
record WollemiFactory(Settings settings) implements Memtable.Factory {
    @Override
    public Memtable create(AtomicReference<CommitLogPosition> commitLogLowerBound, TableMetadataRef metadata,
            Memtable.Owner owner) {
        if (SchemaConstants.isSystemKeyspace(metadata.keyspace)) {
            throw new ConfigurationException("the table " + metadata
                    + " is Cassandra's own and cannot have a wollemi memtable: it must not be the configuration 'default'");
        }
        return new WollemiMemtable(settings, commitLogLowerBound, metadata, owner);
    }

    @Override
    public boolean writesShouldSkipCommitLog() {
        return settings.commitLog() == Settings.CommitLogUse.SKIP;
    }

    @Override
    public boolean writesAreDurable() {
        return settings.durable();
    }
}

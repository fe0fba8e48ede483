package io.github.wollemi.cassandra;

import java.util.ArrayList;
import java.util.List;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.partitions.ImmutableBTreePartition;
import org.apache.cassandra.db.partitions.Partition;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.db.rows.UnfilteredRowIterators;
import org.apache.cassandra.utils.AbstractIterator;

/** The partitions of several pools, in order. A partition in more than one pool is merged on the heap. */
final class MergedScan extends AbstractIterator<Partition> {
    private final List<Scan> scans;
    /** The current partition of each scan; null if the scan must advance first. */
    private final Scan.Stored[] at;

    MergedScan(List<Scan> scans) {
        this.scans = scans;
        this.at = new Scan.Stored[scans.size()];
    }

    @Override
    protected Partition computeNext() {
        DecoratedKey least = null;
        for (int i = 0; i < at.length; i++) {
            if (at[i] == null && scans.get(i).hasNext()) {
                at[i] = scans.get(i).next();
            }
            if (at[i] != null && (least == null || at[i].partitionKey().compareTo(least) < 0)) {
                least = at[i].partitionKey();
            }
        }
        return least == null ? endOfData() : take(least);
    }

    private Partition take(DecoratedKey key) {
        List<Scan.Stored> versions = new ArrayList<>();
        for (int i = 0; i < at.length; i++) {
            if (at[i] != null && at[i].partitionKey().equals(key)) {
                versions.add(at[i]);
                at[i] = null;
            }
        }
        if (versions.size() == 1) {
            return versions.get(0);
        }
        List<UnfilteredRowIterator> rows = versions.stream().map(Scan.Stored::unfilteredIterator).toList();
        try (UnfilteredRowIterator merged = UnfilteredRowIterators.merge(rows)) {
            return ImmutableBTreePartition.create(merged);
        }
    }
}

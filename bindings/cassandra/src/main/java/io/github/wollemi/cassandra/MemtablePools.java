package io.github.wollemi.cassandra;

import io.github.wollemi.WollemiException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.schema.TableMetadataRef;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The pools of one memtable: those that it has adopted, and the one that it writes to. */
final class MemtablePools {
    private static final Logger LOGGER = LoggerFactory.getLogger(MemtablePools.class);

    private final Settings settings;
    private final TableMetadataRef metadata;
    private final Pools tablePools;
    /** Pools of an earlier process that are no longer written, oldest first. */
    private final List<Pool> inherited;
    /** The pool that is written to; null before the first write. */
    private volatile Pool active;
    private long switchedOut = Long.MAX_VALUE;
    private volatile Retirement retirement;

    /**
     * Adopts the pools that an earlier process has left, unless another memtable of the table did.
     *
     * @param truncation returns the time of the table's last truncation: see {@link Pools#adopt}
     * @param adopted is called with each adopted pool
     */
    MemtablePools(Settings settings, TableMetadataRef metadata, LongSupplier truncation, Consumer<Pool> adopted) {
        this.settings = settings;
        this.metadata = metadata;
        this.tablePools = Pools.of(settings, metadata);
        List<Pool> all = tablePools.adopt(settings, metadata, truncation);
        int older = Math.max(all.size() - 1, 0);
        try {
            all.forEach(adopted);
            all.subList(older, all.size()).forEach(Pool::clearSwitchedOut);
        } catch (RuntimeException failed) {
            tablePools.giveBack(all, failed);
            throw failed;
        }
        this.inherited = List.copyOf(all.subList(0, older));
        this.active = all.isEmpty() ? null : all.get(older);
    }

    /** Returns all pools, the one that is written to last. */
    List<Pool> all() {
        Pool pool = active;
        if (pool == null) {
            return inherited;
        }
        if (inherited.isEmpty()) {
            return List.of(pool);
        }
        List<Pool> all = new ArrayList<>(inherited);
        all.add(pool);
        return all;
    }

    /** Returns the pool that is written to; creates it at the first write. */
    Pool writable() {
        Pool pool = active;
        return pool != null ? pool : create();
    }

    private synchronized Pool create() {
        if (active == null) {
            Pool pool = tablePools.create(settings, metadata);
            try {
                if (switchedOut != Long.MAX_VALUE) {
                    pool.setSwitchedOut(switchedOut);
                }
            } catch (RuntimeException failed) {
                removeNew(pool, failed);
                throw failed instanceof WollemiException cause ? MemtableFailure.of(pool, "creating", cause) : failed;
            }
            active = pool;
        }
        return active;
    }

    /** Removes a pool without rows after an exception. If it cannot be retired, the next start adopts it. */
    private void removeNew(Pool pool, RuntimeException failed) {
        try (pool) {
            tablePools.retire(pool.path());
            pool.abandon();
            tablePools.remove(pool.path());
        } catch (RuntimeException also) {
            failed.addSuppressed(also);
        }
    }

    /** Marks the pools as switched out, and waits for their SSTables to retire them. */
    synchronized void switchOut(Memtable memtable, Memtable.Owner owner) {
        switchedOut = tablePools.switchOut(owner);
        retirement = new Retirement(memtable, owner, tablePools, this::all);
        all().forEach(this::markSwitchedOut);
    }

    /**
     * Marks a pool as switched out. A failure is logged, not thrown: an exception would keep Cassandra from ever
     * flushing the memtable, and the mark matters only if the node is killed.
     */
    private void markSwitchedOut(Pool pool) {
        try {
            pool.setSwitchedOut(switchedOut);
        } catch (RuntimeException failed) {
            LOGGER.warn("{}: the memtable pool {} could not be marked as switched out. If the table is truncated and the "
                    + "node is killed before the pool is removed, its rows reappear", metadata, pool, failed);
        }
    }

    /** Records durably that the rows of all pools are in SSTables. */
    void retire() {
        retirement.retire();
    }

    /**
     * Closes and removes all pools, whose rows are in SSTables. An exception for one pool does not keep the others open.
     * If the pools cannot be retired, none is removed, since the next start adopts them.
     */
    void discard() {
        List<RuntimeException> failures = new ArrayList<>();
        attempt(this::retire, failures);
        boolean retired = failures.isEmpty();
        for (Pool pool : all()) {
            attempt(retired ? pool::abandon : pool::close, failures);
        }
        if (retired) {
            all().forEach(pool -> attempt(() -> tablePools.remove(pool.path()), failures));
        }
        if (!failures.isEmpty()) {
            RuntimeException first = failures.get(0);
            failures.stream().skip(1).forEach(first::addSuppressed);
            throw first;
        }
    }

    private static void attempt(Runnable step, List<RuntimeException> failures) {
        try {
            step.run();
        } catch (RuntimeException failed) {
            failures.add(failed);
        }
    }
}

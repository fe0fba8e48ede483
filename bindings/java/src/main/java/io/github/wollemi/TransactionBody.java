package io.github.wollemi;

/**
 * What {@link Database#transact} runs, perhaps several times: it should have no effect but on the transaction, and its
 * result.
 *
 * @param <R> its result
 * @param <X> what it throws
 */
@FunctionalInterface
public interface TransactionBody<R, X extends Exception> {
    /**
     * Reads and changes maps by the transaction.
     *
     * @param transaction the transaction, which is committed afterwards
     * @return what {@link Database#transact} returns
     * @throws X gives the transaction up
     */
    R run(Transaction transaction) throws X;
}

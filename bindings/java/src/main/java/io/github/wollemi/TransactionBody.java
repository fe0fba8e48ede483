package io.github.wollemi;

/**
 * The body that {@link Database#transact} runs, perhaps several times: it should have no effect except on the
 * transaction.
 *
 * @param <R> its result
 * @param <X> its exception
 */
@FunctionalInterface
public interface TransactionBody<R, X extends Exception> {
    /**
     * Reads and changes maps by the transaction.
     *
     * @param transaction the transaction, which is committed afterwards
     * @return what {@link Database#transact} returns
     * @throws X abandons the transaction
     */
    R run(Transaction transaction) throws X;
}

/*
 * Four threads move money between accounts in transactions, and a fifth checks snapshots: the total never changes.
 *
 *     cc bank.c $(pkg-config --cflags --libs wollemi) -pthread -o bank && ./bank
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <wollemi.h>

enum { ACCOUNTS = 16, EACH = 100, THREADS = 4, TRANSFERS = 500 };

static wollemi_db *db;
static wollemi_map *accounts;

static void must(int status) {
    if (status != WOLLEMI_OK) {
        fprintf(stderr, "bank: %s\n", wollemi_message());
        exit(1);
    }
}

struct transfer {
    unsigned char from, to;
    int64_t amount;
};

static int amount_of(wollemi_transaction *transaction, unsigned char account, int64_t *amount) {
    void *value;
    size_t length;
    int status = wollemi_transaction_get(transaction, accounts, &account, 1, &value, &length);
    if (status == WOLLEMI_OK) {
        *amount = *(int64_t *)value;
    }
    wollemi_free(value);
    return status;
}

static int move(wollemi_transaction *transaction, void *argument) {
    struct transfer *transfer = argument;
    int64_t from, to;
    int status = amount_of(transaction, transfer->from, &from);
    if (!status) {
        status = amount_of(transaction, transfer->to, &to);
    }
    if (status) {
        return status;
    }
    if (transfer->from == transfer->to || from < transfer->amount) {
        return WOLLEMI_UNCHANGED; /* gives it up */
    }
    from -= transfer->amount;
    to += transfer->amount;
    status = wollemi_transaction_put(transaction, accounts, &transfer->from, 1, &from, sizeof from);
    if (!status) {
        status = wollemi_transaction_put(transaction, accounts, &transfer->to, 1, &to, sizeof to);
    }
    return status;
}

static void *move_money(void *seed) {
    unsigned state = *(unsigned *)seed;
    int i;
    for (i = 0; i < TRANSFERS; i++) {
        struct transfer transfer;
        int status;
        transfer.from = (state = state * 1103515245u + 12345u) >> 16 & (ACCOUNTS - 1);
        transfer.to = (state = state * 1103515245u + 12345u) >> 16 & (ACCOUNTS - 1);
        transfer.amount = 1 + i % 20;
        do {
            status = wollemi_transact(db, move, &transfer);
        } while (status == WOLLEMI_ERROR_CONFLICT);
        if (status != WOLLEMI_UNCHANGED) {
            must(status);
        }
    }
    return NULL;
}

/* The sum of all accounts at one moment. */
static int64_t total(void) {
    wollemi_snapshot *snapshot;
    wollemi_cursor *cursor;
    const void *value;
    size_t length;
    int64_t sum = 0;
    must(wollemi_snapshot_take(db, 0, &snapshot));
    must(wollemi_snapshot_range(snapshot, accounts, NULL, &cursor));
    while (wollemi_cursor_next(cursor, NULL, NULL, &value, &length) == WOLLEMI_OK) {
        int64_t amount;
        if (length == sizeof amount) {
            unsigned char *to = (unsigned char *)&amount;
            size_t i;
            for (i = 0; i < length; i++) {
                to[i] = ((const unsigned char *)value)[i];
            }
            sum += amount;
        }
    }
    must(wollemi_cursor_free(cursor));
    must(wollemi_snapshot_free(snapshot));
    return sum;
}

int main(void) {
    pthread_t threads[THREADS];
    unsigned seeds[THREADS];
    wollemi_options *options;
    int64_t begin = EACH;
    int i;
    must(wollemi_options_new(&options));
    must(wollemi_options_set_max_size(options, 64 << 20));
    must(wollemi_open_in_memory(options, &db));
    must(wollemi_options_free(options));
    must(wollemi_map_open(db, "accounts", &accounts));
    for (i = 0; i < ACCOUNTS; i++) {
        unsigned char account = (unsigned char)i;
        must(wollemi_put(accounts, &account, 1, &begin, sizeof begin));
    }
    for (i = 0; i < THREADS; i++) {
        seeds[i] = (unsigned)i + 1;
        if (pthread_create(&threads[i], NULL, move_money, &seeds[i])) {
            return 1;
        }
    }
    for (i = 0; i < 100; i++) {
        if (total() != ACCOUNTS * EACH) {
            fprintf(stderr, "bank: a snapshot has %lld\n", (long long)total());
            return 1;
        }
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%lld of %d\n", (long long)total(), ACCOUNTS * EACH);
    must(wollemi_map_close(accounts));
    must(wollemi_close(db));
    return 0;
}

/*
 * Counts up in a pool, and prints each number once it is durable, until it is killed. With `check` it verifies that all
 * numbers below the given one are present.
 *
 *     ./counter counter.pool                  # prints 0, 1, 2, … each after its put has returned; kill -9 it
 *     ./counter counter.pool check 12346      # if the last line was 12345
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wollemi.h>

static void must(int status) {
    if (status != WOLLEMI_OK) {
        fprintf(stderr, "counter: %s\n", wollemi_message());
        exit(1);
    }
}

/* Every third number is written by a batch and every third by a transaction; keys sort by number. */
static void put(wollemi_db *db, wollemi_map *map, uint64_t number) {
    char key[32], value[64];
    int key_length = snprintf(key, sizeof key, "%012llu", (unsigned long long)number);
    int length = snprintf(value, sizeof value, "the value of number %llu", (unsigned long long)number);
    if (number % 3 == 0) {
        must(wollemi_put(map, key, (size_t)key_length, value, (size_t)length));
    } else if (number % 3 == 1) {
        wollemi_batch *batch;
        must(wollemi_batch_new(db, &batch));
        must(wollemi_batch_put(batch, map, key, (size_t)key_length, value, (size_t)length));
        must(wollemi_batch_put(batch, map, "last", 4, &number, sizeof number));
        must(wollemi_batch_commit(batch));
        must(wollemi_batch_free(batch));
    } else {
        wollemi_transaction *transaction;
        must(wollemi_transaction_begin(db, &transaction));
        must(wollemi_transaction_put(transaction, map, key, (size_t)key_length, value, (size_t)length));
        must(wollemi_transaction_put(transaction, map, "last", 4, &number, sizeof number));
        must(wollemi_transaction_commit(transaction));
        must(wollemi_transaction_free(transaction));
    }
}

static int check(wollemi_map *map, uint64_t acknowledged) {
    uint64_t number;
    for (number = 0; number < acknowledged; number++) {
        char key[32], wanted[64];
        void *value;
        size_t length;
        int key_length = snprintf(key, sizeof key, "%012llu", (unsigned long long)number);
        int wanted_length = snprintf(wanted, sizeof wanted, "the value of number %llu", (unsigned long long)number);
        int status = wollemi_get(map, key, (size_t)key_length, &value, &length);
        if (status || length != (size_t)wanted_length || memcmp(value, wanted, length)) {
            fprintf(stderr, "counter: %llu was acknowledged and is lost\n", (unsigned long long)number);
            return 1;
        }
        wollemi_free(value);
    }
    return 0;
}

int main(int argc, char **argv) {
    wollemi_db *db;
    wollemi_map *map;
    uint64_t number;
    int status = 0;
    if (argc != 2 && !(argc == 4 && !strcmp(argv[2], "check"))) {
        fprintf(stderr, "usage: counter POOL [check NUMBER]\n");
        return 2;
    }
    must(wollemi_open(argv[1], NULL, &db));
    must(wollemi_map_open(db, "numbers", &map));
    if (argc == 4) {
        status = check(map, strtoull(argv[3], NULL, 10));
        must(wollemi_check(db, NULL));
    } else {
        /* Continues after the last number present, which may be one more than was printed. */
        must(wollemi_count(map, &number));
        if (number > 0 && wollemi_contains(map, "last", 4) == WOLLEMI_OK) {
            number--;
        }
        for (;; number++) {
            char line[32];
            int length = snprintf(line, sizeof line, "%llu\n", (unsigned long long)number);
            put(db, map, number);
            if (write(1, line, (size_t)length) != length) {
                break;
            }
        }
    }
    must(wollemi_map_close(map));
    must(wollemi_close(db));
    return status;
}

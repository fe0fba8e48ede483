/*
 * Wrong uses of handles and arguments: each returns a status, and none is undefined behaviour.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wollemi.h>

static void expect_at(int line, int found, int wanted) {
    if (found != wanted) {
        fprintf(stderr, "misuse.c:%d: %s in place of %s: %s\n", line, wollemi_status_name(found),
                wollemi_status_name(wanted), wollemi_message());
        exit(1);
    }
}
#define EXPECT(call, wanted) expect_at(__LINE__, (call), (wanted))
#define OK(call) EXPECT(call, WOLLEMI_OK)

static int frees(wollemi_transaction *transaction, void *argument) {
    (void)argument;
    return wollemi_transaction_free(transaction);
}

static int answers_nonsense(wollemi_transaction *transaction, void *argument) {
    (void)transaction;
    (void)argument;
    return 12345;
}

struct closing {
    wollemi_db *db;
    wollemi_map *map;
    int runs;
};

/* Closes its own database in its first run, and then meets a conflict. */
static int closes(wollemi_transaction *transaction, void *argument) {
    struct closing *closing = argument;
    void *value;
    size_t length;
    EXPECT(wollemi_transaction_get(transaction, closing->map, "k", 1, &value, &length),
           closing->runs ? WOLLEMI_OK : WOLLEMI_NOT_FOUND);
    wollemi_free(value);
    OK(wollemi_transaction_put(transaction, closing->map, "l", 1, "v", 1));
    if (closing->runs++ == 0) {
        OK(wollemi_close(closing->db));
        OK(wollemi_put(closing->map, "k", 1, "v", 1));
    }
    return WOLLEMI_OK;
}

/* Takes as many entries as it can from a cursor that another thread uses too. */
static void *take(void *cursor) {
    long taken = 0;
    for (;;) {
        int status = wollemi_cursor_next(cursor, NULL, NULL, NULL, NULL);
        if (status == WOLLEMI_NOT_FOUND) {
            return (void *)taken;
        }
        if (status == WOLLEMI_OK) {
            taken++;
        } else {
            EXPECT(status, WOLLEMI_ERROR_THREADS);
        }
    }
}

int main(int argc, char **argv) {
    wollemi_options *options;
    wollemi_db *db, *other;
    wollemi_map *map, *foreign, *nothing;
    wollemi_cursor *cursor;
    wollemi_batch *batch;
    wollemi_transaction *transaction;
    wollemi_snapshot *snapshot;
    wollemi_numbers numbers;
    wollemi_range range = {0};
    wollemi_slice keys[2] = {{"k", 1}, {NULL, 1}};
    wollemi_bytes values[2];
    struct closing closing = {0};
    pthread_t thread;
    void *value, *theirs;
    size_t length;
    int64_t life;
    long ours;
    int i;
    char backup[4096];
    char *long_key = calloc(1, 70000);
    if (argc != 2 || !long_key) {
        return 2;
    }

    /* Arguments. */
    OK(wollemi_options_new(&options));
    EXPECT(wollemi_options_new(NULL), WOLLEMI_ERROR_ARGUMENT);
    EXPECT(wollemi_options_set_level(options, 17), WOLLEMI_ERROR_ARGUMENT);
    EXPECT(wollemi_options_set_index(options, "no such index"), WOLLEMI_ERROR_ARGUMENT);
    EXPECT(wollemi_options_set_index(options, "\xff"), WOLLEMI_ERROR_ARGUMENT);
    OK(wollemi_options_set_max_size(options, 64 << 20));
    OK(wollemi_options_set_lock_wait(options, 0));
    EXPECT(wollemi_open(NULL, options, &db), WOLLEMI_ERROR_ARGUMENT);
    EXPECT(wollemi_open("/", options, &db), WOLLEMI_ERROR_NOT_A_POOL);
    if (db != NULL) {
        return 1;
    }
    EXPECT(wollemi_open("/no/such/folder/pool", options, &db), WOLLEMI_ERROR_MISSING);
    OK(wollemi_open(argv[1], options, &db));
    EXPECT(wollemi_open(argv[1], options, &other), WOLLEMI_ERROR_BUSY);
    OK(wollemi_options_set_create(options, 0));
    EXPECT(wollemi_map_open(db, "", &map), WOLLEMI_ERROR_LENGTH);
    EXPECT(wollemi_map_open(db, NULL, &map), WOLLEMI_ERROR_ARGUMENT);
    OK(wollemi_map_open(db, "m", &map));
    EXPECT(wollemi_put(map, NULL, 1, "v", 1), WOLLEMI_ERROR_ARGUMENT);
    EXPECT(wollemi_put(map, long_key, 70000, "v", 1), WOLLEMI_ERROR_LENGTH);
    EXPECT(wollemi_get(map, "k", 1, NULL, &length), WOLLEMI_ERROR_ARGUMENT);
    EXPECT(wollemi_read(map, "k", 1, NULL, NULL), WOLLEMI_ERROR_ARGUMENT);
    EXPECT(wollemi_multi_get(map, 1, NULL, NULL), WOLLEMI_ERROR_ARGUMENT);
    /* After a failure no value is left to free. */
    for (i = 0; i < 2; i++) {
        memset(values, 0xff, sizeof values);
        EXPECT(wollemi_multi_get(map, 2, i == 0 ? NULL : keys, values), WOLLEMI_ERROR_ARGUMENT);
        if (values[0].data != NULL || values[1].data != NULL) {
            return 1;
        }
    }
    EXPECT(wollemi_stats(db, &numbers, 1), WOLLEMI_ERROR_ARGUMENT);
    EXPECT(wollemi_transact(db, NULL, NULL), WOLLEMI_ERROR_ARGUMENT);
    range.flags = 128;
    EXPECT(wollemi_map_range(map, &range, &cursor), WOLLEMI_ERROR_ARGUMENT);
    EXPECT(wollemi_check_version(WOLLEMI_VERSION_MAJOR + 1, 0), WOLLEMI_ERROR_UNSUPPORTED);
    EXPECT(wollemi_expiring_put(map, "x", 1, "v", 1, 1000), WOLLEMI_OK);
    OK(wollemi_put(map, "short", 5, "v", 1));
    EXPECT(wollemi_expiring_get(map, "short", 5, &value, &length, NULL), WOLLEMI_ERROR_NOT_EXPIRING);
    /* Outputs of a call that does not succeed are cleared, those beside a missing one too. */
    for (i = 0; i < 3; i++) {
        life = 7;
        length = 7;
        EXPECT(wollemi_expiring_get(map, "absent", 6, i == 1 ? NULL : &value, i == 2 ? NULL : &length, &life),
               i == 0 ? WOLLEMI_NOT_FOUND : WOLLEMI_ERROR_ARGUMENT);
        if (life != 0 || (i != 2 && length != 0)) {
            fprintf(stderr, "misuse: outputs are left: %d, %ld, %lu\n", i, (long)life, (unsigned long)length);
            return 1;
        }
    }
    OK(wollemi_expiring_put(map, "lasting", 7, "v", 1, -1));
    OK(wollemi_expiring_get(map, "lasting", 7, &value, &length, &life));
    wollemi_free(value);
    if (life != -1) {
        return 1;
    }
    OK(wollemi_delete(map, "lasting", 7));

    /* Handles: NULL, closed, of another kind, of another database. */
    EXPECT(wollemi_put(NULL, "k", 1, "v", 1), WOLLEMI_ERROR_ARGUMENT);
    EXPECT(wollemi_put((wollemi_map *)db, "k", 1, "v", 1), WOLLEMI_ERROR_HANDLE);
    EXPECT(wollemi_close((wollemi_db *)options), WOLLEMI_ERROR_HANDLE);
    OK(wollemi_open_in_memory(options, &other));
    OK(wollemi_options_free(options));
    EXPECT(wollemi_options_free(options), WOLLEMI_ERROR_HANDLE);
    OK(wollemi_map_open(other, "m", &foreign));
    OK(wollemi_batch_new(db, &batch));
    OK(wollemi_batch_put(batch, foreign, "k", 1, "v", 1));
    EXPECT(wollemi_batch_commit(batch), WOLLEMI_ERROR_OTHER_DATABASE);
    OK(wollemi_batch_free(batch));
    EXPECT(wollemi_batch_free(batch), WOLLEMI_ERROR_HANDLE);
    OK(wollemi_snapshot_take(db, 0, &snapshot));
    EXPECT(wollemi_snapshot_get(snapshot, foreign, "k", 1, &value, &length), WOLLEMI_ERROR_OTHER_DATABASE);
    OK(wollemi_snapshot_free(snapshot));
    EXPECT(wollemi_snapshot_memory(snapshot, NULL), WOLLEMI_ERROR_ARGUMENT);
    OK(wollemi_map_close(foreign));
    EXPECT(wollemi_get(foreign, "k", 1, &value, &length), WOLLEMI_ERROR_HANDLE);
    if (value != NULL || !strstr(wollemi_message(), "closed")) {
        return 1;
    }
    /* A closed handle is recognized while up to 64 others are closed after it. */
    for (i = 0; i < 64; i++) {
        OK(wollemi_map_open(db, "m", &nothing));
        OK(wollemi_map_close(nothing));
    }
    EXPECT(wollemi_contains(foreign, "k", 1), WOLLEMI_ERROR_HANDLE);
    OK(wollemi_close(other));
    OK(wollemi_close(NULL));
    OK(wollemi_cursor_free(NULL));

    /* Indexes without order. */
    OK(wollemi_map_open_with(db, "hashed", "clht", &nothing));
    OK(wollemi_transaction_begin(db, &transaction));
    EXPECT(wollemi_transaction_range(transaction, nothing, NULL, &cursor), WOLLEMI_ERROR_UNORDERED);
    OK(wollemi_map_close(nothing));

    /* Transactions that are over, and their cursors. */
    OK(wollemi_transaction_range(transaction, map, NULL, &cursor));
    OK(wollemi_transaction_free(transaction));
    EXPECT(wollemi_cursor_next(cursor, NULL, NULL, NULL, NULL), WOLLEMI_ERROR_HANDLE);
    OK(wollemi_cursor_free(cursor));
    EXPECT(wollemi_transaction_commit(transaction), WOLLEMI_ERROR_HANDLE);
    EXPECT(wollemi_transact(db, frees, NULL), WOLLEMI_ERROR_ARGUMENT);
    EXPECT(wollemi_transact(db, answers_nonsense, NULL), WOLLEMI_ERROR_ARGUMENT);
    OK(wollemi_open_in_memory(NULL, &closing.db));
    OK(wollemi_map_open(closing.db, "m", &closing.map));
    OK(wollemi_transact(closing.db, closes, &closing));
    if (closing.runs != 2) {
        return 1;
    }
    OK(wollemi_map_close(closing.map));

    /* A backup that fails leaves no file that obstructs the next one. */
    snprintf(backup, sizeof backup, "%s.backup", argv[1]);
    OK(wollemi_snapshot_take(db, 1, &snapshot));
    OK(wollemi_put(map, "short", 5, "w", 1));
    EXPECT(wollemi_snapshot_backup(snapshot, backup), WOLLEMI_ERROR_SNAPSHOT);
    OK(wollemi_snapshot_free(snapshot));
    OK(wollemi_snapshot_take(db, 0, &snapshot));
    OK(wollemi_snapshot_backup(snapshot, backup));
    EXPECT(wollemi_snapshot_backup(snapshot, backup), WOLLEMI_ERROR_SYSTEM);
    OK(wollemi_snapshot_free(snapshot));

    /* One cursor, two threads: each entry goes to one of them. */
    for (i = 0; i < 2000; i++) {
        OK(wollemi_put(map, &i, sizeof i, "v", 1));
    }
    OK(wollemi_map_range(map, NULL, &cursor));
    if (pthread_create(&thread, NULL, take, cursor)) {
        return 1;
    }
    ours = (long)take(cursor);
    pthread_join(thread, &theirs);
    if (ours + (long)theirs != 2002) {
        fprintf(stderr, "misuse: %ld and %ld of 2002 entries\n", ours, (long)theirs);
        return 1;
    }
    OK(wollemi_cursor_free(cursor));

    /* No closed handle has kept the pool open. */
    OK(wollemi_map_close(map));
    OK(wollemi_close(db));
    OK(wollemi_options_new(&options));
    OK(wollemi_options_set_read_only(options, 1));
    OK(wollemi_options_set_max_size(options, 64 << 20));
    OK(wollemi_open(argv[1], options, &db));
    OK(wollemi_map_find(db, "m", &map));
    EXPECT(wollemi_put(map, "k", 1, "v", 1), WOLLEMI_ERROR_READ_ONLY);
    OK(wollemi_map_close(map));
    OK(wollemi_close(db));
    OK(wollemi_options_free(options));
    free(long_key);
    puts("each misuse was reported");
    return 0;
}

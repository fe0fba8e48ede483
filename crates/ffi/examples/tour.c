/*
 * A tour of the C interface: every group of calls once, on a small pool at the given path, or in memory.
 *
 *     cc tour.c $(pkg-config --cflags --libs wollemi) -o tour && ./tour tour.pool
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wollemi.h>

/* Ends the program unless a call returns the expected status. */
static void expect_at(int line, int found, int wanted) {
    if (found != wanted) {
        fprintf(stderr, "tour.c:%d: %s in place of %s: %s\n", line, wollemi_status_name(found),
                wollemi_status_name(wanted), wollemi_message());
        exit(1);
    }
}
#define EXPECT(call, wanted) expect_at(__LINE__, (call), (wanted))
#define OK(call) EXPECT(call, WOLLEMI_OK)

static void check_at(int line, int holds) {
    if (!holds) {
        fprintf(stderr, "tour.c:%d: not so\n", line);
        exit(1);
    }
}
#define CHECK(condition) check_at(__LINE__, (condition))

static int put(wollemi_map *map, const char *key, const char *value) {
    return wollemi_put(map, key, strlen(key), value, strlen(value));
}

/* Whether the key has this value; NULL: whether it is absent. */
static int holds(wollemi_map *map, const char *key, const char *wanted) {
    void *value;
    size_t length;
    int status = wollemi_get(map, key, strlen(key), &value, &length);
    int same = wanted ? status == WOLLEMI_OK && length == strlen(wanted) && !memcmp(value, wanted, length)
                      : status == WOLLEMI_NOT_FOUND && !value;
    wollemi_free(value);
    return same;
}

/* Returns the keys of a cursor, from one end, one after the other. Frees the cursor. */
static const char *keys(wollemi_cursor *cursor, int backwards) {
    static char shown[256];
    const void *key;
    size_t length, end = 0;
    int status;
    while (!(status = (backwards ? wollemi_cursor_next_back : wollemi_cursor_next)(cursor, &key, &length, NULL, NULL))) {
        memcpy(shown + end, key, length);
        end += length;
        shown[end++] = ' ';
    }
    EXPECT(status, WOLLEMI_NOT_FOUND);
    OK(wollemi_cursor_free(cursor));
    shown[end] = 0;
    return shown;
}

static wollemi_db *open_pool(const char *path) {
    wollemi_options *options;
    wollemi_db *db;
    OK(wollemi_options_new(&options));
    OK(wollemi_options_set_level(options, WOLLEMI_LEVEL_PROCESS));
    OK(wollemi_options_set_index(options, "roart"));
    OK(wollemi_options_set_max_size(options, 64 << 20));
    OK(wollemi_options_set_recovery_threads(options, 1));
    if (path) {
        OK(wollemi_open(path, options, &db));
    } else {
        OK(wollemi_open_in_memory(options, &db));
    }
    OK(wollemi_options_free(options));
    return db;
}

static void single_keys(wollemi_map *map) {
    char room[8];
    size_t length;
    OK(put(map, "apple", "0.30"));
    EXPECT(wollemi_insert(map, "apple", 5, "0.35", 4), WOLLEMI_UNCHANGED);
    OK(wollemi_insert(map, "apricot", 7, "0.45", 4));
    EXPECT(wollemi_update(map, "pear", 4, "0.20", 4), WOLLEMI_UNCHANGED);
    OK(wollemi_contains(map, "apple", 5));
    EXPECT(wollemi_contains(map, "pear", 4), WOLLEMI_NOT_FOUND);
    OK(wollemi_compare_and_swap(map, "apple", 5, "0.30", 4, "0.35", 4));
    EXPECT(wollemi_compare_and_swap(map, "apple", 5, NULL, 0, "0.40", 4), WOLLEMI_UNCHANGED);
    CHECK(holds(map, "apple", "0.35"));
    OK(wollemi_get_into(map, "apple", 5, room, sizeof room, &length));
    CHECK(length == 4 && !memcmp(room, "0.35", 4));
    EXPECT(wollemi_get_into(map, "apple", 5, room, 3, &length), WOLLEMI_TOO_SMALL);
    CHECK(length == 4);
    OK(wollemi_put(map, NULL, 0, NULL, 0)); /* the empty key, with no bytes */
    CHECK(holds(map, "", ""));
    OK(wollemi_delete(map, NULL, 0));
    EXPECT(wollemi_delete(map, NULL, 0), WOLLEMI_NOT_FOUND);
}

static void add_length(const void *value, size_t length, void *sum) {
    (void)value;
    *(size_t *)sum += length;
}

static void many_keys(wollemi_map *map) {
    wollemi_slice wanted[3] = {{"apple", 5}, {"nothing", 7}, {"apricot", 7}};
    wollemi_bytes values[3];
    size_t sum = 0;
    uint64_t count;
    int i;
    OK(wollemi_multi_get(map, 3, wanted, values));
    CHECK(values[0].len == 4 && values[1].data == NULL && values[2].len == 4);
    for (i = 0; i < 3; i++) {
        wollemi_free(values[i].data);
    }
    OK(wollemi_read(map, "apple", 5, add_length, &sum));
    OK(wollemi_count(map, &count));
    CHECK(sum == 4 && count == 2);
}

static void ranges(wollemi_map *map) {
    wollemi_range range = {0};
    wollemi_cursor *cursor;
    const void *key, *value;
    size_t key_length, value_length;
    OK(put(map, "banana", "0.15"));
    OK(put(map, "cherry", "0.90"));

    OK(wollemi_map_range(map, NULL, &cursor));
    CHECK(!strcmp(keys(cursor, 0), "apple apricot banana cherry "));
    range.prefix = "ap";
    range.prefix_len = 2;
    OK(wollemi_map_range(map, &range, &cursor));
    CHECK(!strcmp(keys(cursor, 1), "apricot apple "));
    range.from = "apple";
    range.from_len = 5;
    range.flags = WOLLEMI_FROM_EXCLUDED;
    OK(wollemi_map_range(map, &range, &cursor));
    CHECK(!strcmp(keys(cursor, 0), "apricot "));
    memset(&range, 0, sizeof range);
    range.from = "apricot";
    range.from_len = 7;
    range.to = "cherry";
    range.to_len = 6;
    OK(wollemi_map_range(map, &range, &cursor));
    CHECK(!strcmp(keys(cursor, 0), "apricot banana "));
    range.flags = WOLLEMI_TO_INCLUDED;
    OK(wollemi_map_range(map, &range, &cursor));
    OK(wollemi_cursor_next_back(cursor, &key, &key_length, &value, &value_length));
    CHECK(key_length == 6 && !memcmp(key, "cherry", 6) && !memcmp(value, "0.90", value_length));
    CHECK(!strcmp(keys(cursor, 0), "apricot banana "));
}

static void batches(wollemi_db *db, wollemi_map *map) {
    wollemi_batch *batch;
    OK(wollemi_batch_new(db, &batch));
    OK(wollemi_batch_expect(batch, map, "cherry", 6, "0.90", 4));
    OK(wollemi_batch_put(batch, map, "cherry", 6, "0.95", 4));
    OK(wollemi_batch_delete(batch, map, "banana", 6));
    OK(wollemi_batch_commit(batch));
    EXPECT(wollemi_batch_commit(batch), WOLLEMI_ERROR_HANDLE);
    OK(wollemi_batch_free(batch));
    CHECK(holds(map, "cherry", "0.95") && holds(map, "banana", NULL));

    OK(wollemi_batch_new(db, &batch));
    OK(wollemi_batch_expect(batch, map, "cherry", 6, NULL, 0));
    OK(wollemi_batch_delete(batch, map, "cherry", 6));
    EXPECT(wollemi_batch_commit(batch), WOLLEMI_UNCHANGED);
    OK(wollemi_batch_free(batch));
    CHECK(holds(map, "cherry", "0.95"));
}

static int raise_prices(wollemi_transaction *transaction, void *argument) {
    wollemi_map *map = argument;
    wollemi_cursor *cursor;
    const void *key;
    size_t length;
    int status = wollemi_transaction_range(transaction, map, NULL, &cursor);
    while (!status && !(status = wollemi_cursor_next(cursor, &key, &length, NULL, NULL))) {
        status = wollemi_transaction_put(transaction, map, key, length, "1.00", 4);
    }
    wollemi_cursor_free(cursor);
    return status == WOLLEMI_NOT_FOUND ? WOLLEMI_OK : status;
}

static int refuse(wollemi_transaction *transaction, void *argument) {
    OK(wollemi_transaction_delete(transaction, argument, "apple", 5));
    return WOLLEMI_UNCHANGED;
}

static void transactions(wollemi_db *db, wollemi_map *map) {
    wollemi_transaction *transaction;
    const char *name;
    const void *key;
    void *value;
    size_t length;
    OK(wollemi_transaction_begin(db, &transaction));
    OK(wollemi_transaction_get(transaction, map, "apple", 5, &value, &length));
    OK(wollemi_transaction_put(transaction, map, "apple, yesterday", 16, value, length));
    wollemi_free(value);
    EXPECT(wollemi_transaction_insert(transaction, map, "cherry", 6, "1", 1), WOLLEMI_UNCHANGED);
    EXPECT(wollemi_transaction_delete(transaction, map, "pear", 4), WOLLEMI_NOT_FOUND);
    CHECK(holds(map, "apple, yesterday", NULL)); /* not before the commit */
    OK(wollemi_transaction_commit(transaction));
    OK(wollemi_transaction_free(transaction));
    CHECK(holds(map, "apple, yesterday", "0.35"));

    OK(wollemi_transaction_begin(db, &transaction));
    OK(wollemi_transaction_get(transaction, map, "apple", 5, &value, &length));
    wollemi_free(value);
    OK(put(map, "apple", "0.50")); /* stands for another writer */
    OK(wollemi_transaction_put(transaction, map, "apple", 5, "0.36", 4));
    EXPECT(wollemi_transaction_commit(transaction), WOLLEMI_ERROR_CONFLICT);
    OK(wollemi_conflict(&name, &key, &length));
    CHECK(!strcmp(name, "prices") && length == 5 && !memcmp(key, "apple", 5));
    OK(wollemi_transaction_free(transaction));
    CHECK(holds(map, "apple", "0.50"));

    OK(wollemi_transact(db, raise_prices, map));
    CHECK(holds(map, "apple", "1.00") && holds(map, "cherry", "1.00"));
    EXPECT(wollemi_transact(db, refuse, map), WOLLEMI_UNCHANGED);
    CHECK(holds(map, "apple", "1.00"));
}

static void snapshots(wollemi_db *db, wollemi_map *map) {
    wollemi_snapshot *snapshot;
    wollemi_cursor *cursor;
    void *value;
    size_t length;
    uint64_t bytes;
    OK(wollemi_snapshot_take(db, 0, &snapshot));
    OK(put(map, "apple", "2.00"));
    OK(wollemi_delete(map, "cherry", 6));
    OK(wollemi_snapshot_get(snapshot, map, "apple", 5, &value, &length));
    CHECK(length == 4 && !memcmp(value, "1.00", 4));
    wollemi_free(value);
    OK(wollemi_snapshot_memory(snapshot, &bytes));
    CHECK(bytes > 0);
    OK(wollemi_snapshot_range(snapshot, map, NULL, &cursor));
    OK(wollemi_snapshot_free(snapshot));
    CHECK(!strcmp(keys(cursor, 0), "apple apple, yesterday apricot cherry "));
}

static void expiry(wollemi_db *db) {
    wollemi_map *sessions;
    wollemi_sweeper *sweeper;
    wollemi_cursor *cursor;
    void *value;
    size_t length;
    int64_t life;
    OK(wollemi_map_open(db, "sessions", &sessions));
    OK(wollemi_expiring_put(sessions, "alice", 5, "token", 5, 3600 * 1000));
    OK(wollemi_expiring_put(sessions, "bob", 3, "token", 5, 0));
    EXPECT(wollemi_expiring_insert(sessions, "alice", 5, "other", 5, -1), WOLLEMI_UNCHANGED);
    OK(wollemi_expiring_get(sessions, "alice", 5, &value, &length, &life));
    CHECK(length == 5 && life > 0 && life <= 3600 * 1000);
    wollemi_free(value);
    EXPECT(wollemi_expiring_get(sessions, "bob", 3, &value, &length, NULL), WOLLEMI_NOT_FOUND);
    OK(wollemi_expiring_touch(sessions, "alice", 5, -1));
    OK(wollemi_expiring_get(sessions, "alice", 5, &value, &length, &life));
    CHECK(life == -1);
    wollemi_free(value);
    OK(wollemi_sweeper_start(sessions, 1, &sweeper));
    OK(wollemi_expiring_range(sessions, NULL, &cursor));
    CHECK(!strcmp(keys(cursor, 0), "alice "));
    OK(wollemi_expiring_delete(sessions, "alice", 5));
    OK(wollemi_sweeper_stop(sweeper));
    OK(wollemi_map_close(sessions));
}

static int count_maps(const char *name, const char *index, void *count) {
    CHECK(*name && !strcmp(index, "roart"));
    ++*(int *)count;
    return 0;
}

static void the_database(wollemi_db *db) {
    wollemi_numbers numbers;
    wollemi_map *map;
    char *json;
    int level, maps = 0;
    OK(wollemi_maps(db, count_maps, &maps));
    CHECK(maps == 2);
    EXPECT(wollemi_map_find(db, "nothing", &map), WOLLEMI_NOT_FOUND);
    OK(wollemi_map_drop(db, "sessions"));
    EXPECT(wollemi_map_drop(db, "prices"), WOLLEMI_ERROR_IN_USE);
    EXPECT(wollemi_map_open_with(db, "prices", "part", &map), WOLLEMI_ERROR_OTHER_INDEX);
    OK(wollemi_get_level(db, &level));
    CHECK(level == WOLLEMI_LEVEL_PROCESS);
    OK(wollemi_sync(db));
    OK(wollemi_checkpoint(db, 1));
    OK(wollemi_wait_recovered(db));
    OK(wollemi_give_back(db, NULL));
    OK(wollemi_stats(db, &numbers, sizeof numbers));
    CHECK(numbers.maps == 1 && numbers.reserved > 0 && numbers.generation > 0);
    OK(wollemi_stats_json(db, &json));
    CHECK(json[0] == '{');
    wollemi_free(json);
    OK(wollemi_check(db, &json));
    CHECK(strstr(json, "prices") != NULL);
    wollemi_free(json);
}

int main(int argc, char **argv) {
    wollemi_db *db;
    wollemi_map *map;
    if (argc > 2) {
        fprintf(stderr, "usage: tour [POOL]\n");
        return 2;
    }
    OK(wollemi_check_version(WOLLEMI_VERSION_MAJOR, WOLLEMI_VERSION_MINOR));
    db = open_pool(argv[1]);
    OK(wollemi_map_open(db, "prices", &map));
    single_keys(map);
    many_keys(map);
    ranges(map);
    batches(db, map);
    transactions(db, map);
    snapshots(db, map);
    expiry(db);
    the_database(db);
    OK(wollemi_map_close(map));
    OK(wollemi_close(db));

    if (argc == 2) {
        db = open_pool(argv[1]);
        OK(wollemi_map_find(db, "prices", &map));
        CHECK(holds(map, "apple", "2.00") && holds(map, "cherry", NULL));
        OK(wollemi_close(db)); /* in any order */
        OK(wollemi_map_close(map));
    }
    printf("Wollemi %s: all checks passed\n", wollemi_version());
    return 0;
}

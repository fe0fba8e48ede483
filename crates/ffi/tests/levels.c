/*
 * A database of level `disk`: a write waits for the disk unless it is eventual, by the options, the map's handle, the
 * batch or the transaction.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wollemi.h>

static void expect_at(int line, int found, int wanted) {
    if (found != wanted) {
        fprintf(stderr, "levels.c:%d: %s in place of %s: %s\n", line, wollemi_status_name(found),
                wollemi_status_name(wanted), wollemi_message());
        exit(1);
    }
}
#define EXPECT(call, wanted) expect_at(__LINE__, (call), (wanted))
#define OK(call) EXPECT(call, WOLLEMI_OK)

static void check_at(int line, int holds) {
    if (!holds) {
        fprintf(stderr, "levels.c:%d: not so\n", line);
        exit(1);
    }
}
#define CHECK(condition) check_at(__LINE__, (condition))

static unsigned long long number(const char *json, const char *name) {
    const char *place = strstr(json, name);
    CHECK(place != NULL);
    return strtoull(place + strlen(name), NULL, 10);
}

/* Whether everything in the log is on the disk. */
static int all_durable(const wollemi_db *db) {
    char *json;
    int all;
    OK(wollemi_stats_json(db, &json));
    all = number(json, "\"appended\":") == number(json, "\"durable\":");
    wollemi_free(json);
    return all;
}

static wollemi_options *options_of_disk(void) {
    wollemi_options *options;
    OK(wollemi_options_new(&options));
    OK(wollemi_options_set_max_size(options, 256 << 20));
    OK(wollemi_options_set_page_size(options, 64 << 10));
    OK(wollemi_options_set_level(options, WOLLEMI_LEVEL_DISK));
    OK(wollemi_options_set_log_limit(options, 64 << 20));
    OK(wollemi_options_set_sync_within(options, 3600 * 1000));
    EXPECT(wollemi_options_set_durability(options, 2), WOLLEMI_ERROR_ARGUMENT);
    EXPECT(wollemi_options_set_after_power_loss(options, 3), WOLLEMI_ERROR_ARGUMENT);
    OK(wollemi_options_set_after_power_loss(options, WOLLEMI_REFUSE));
    return options;
}

static void immediate_and_eventual(wollemi_db *db) {
    wollemi_map *map, *eventual, *nothing;
    wollemi_batch *batch;
    wollemi_transaction *transaction;
    OK(wollemi_map_open(db, "m", &map));
    EXPECT(wollemi_map_with_durability(map, 2, &nothing), WOLLEMI_ERROR_ARGUMENT);
    OK(wollemi_map_with_durability(map, WOLLEMI_EVENTUAL, &eventual));

    OK(wollemi_put(map, "1", 1, "v", 1));
    CHECK(all_durable(db));
    OK(wollemi_put(eventual, "2", 1, "v", 1));
    CHECK(!all_durable(db));
    OK(wollemi_sync(db));
    CHECK(all_durable(db));

    OK(wollemi_batch_new(db, &batch));
    OK(wollemi_batch_set_durability(batch, WOLLEMI_EVENTUAL));
    OK(wollemi_batch_put(batch, map, "3", 1, "v", 1));
    OK(wollemi_batch_commit(batch));
    OK(wollemi_batch_free(batch));
    CHECK(!all_durable(db));
    /* It waits for those before it, too. */
    OK(wollemi_put(map, "4", 1, "v", 1));
    CHECK(all_durable(db));

    OK(wollemi_transaction_begin(db, &transaction));
    EXPECT(wollemi_transaction_set_durability(transaction, 2), WOLLEMI_ERROR_ARGUMENT);
    OK(wollemi_transaction_set_durability(transaction, WOLLEMI_EVENTUAL));
    OK(wollemi_transaction_put(transaction, map, "5", 1, "v", 1));
    OK(wollemi_transaction_commit(transaction));
    OK(wollemi_transaction_free(transaction));
    CHECK(!all_durable(db));

    OK(wollemi_map_close(eventual));
    OK(wollemi_map_close(map));
}

int main(int argc, char **argv) {
    wollemi_options *options = options_of_disk();
    wollemi_db *db;
    wollemi_map *map;
    uint64_t count;
    int level;
    if (argc != 2) {
        return 2;
    }
    OK(wollemi_open(argv[1], options, &db));
    OK(wollemi_get_level(db, &level));
    CHECK(level == WOLLEMI_LEVEL_DISK);
    immediate_and_eventual(db);
    OK(wollemi_close(db));

    /* A pool that has a log keeps it. */
    OK(wollemi_options_set_level(options, WOLLEMI_LEVEL_PROCESS));
    OK(wollemi_options_set_durability(options, WOLLEMI_EVENTUAL));
    OK(wollemi_open(argv[1], options, &db));
    OK(wollemi_options_free(options));
    OK(wollemi_get_level(db, &level));
    CHECK(level == WOLLEMI_LEVEL_DISK);
    OK(wollemi_map_find(db, "m", &map));
    OK(wollemi_put(map, "6", 1, "v", 1));
    CHECK(!all_durable(db));
    OK(wollemi_checkpoint(db, true));
    OK(wollemi_count(map, &count));
    CHECK(count == 6);
    OK(wollemi_map_close(map));
    OK(wollemi_close(db));
    puts("each write waited as it should");
    return 0;
}

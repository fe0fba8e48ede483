/*
 * Wollemi for C: an ordered, persistent key-value store that is up again the instant it is reopened.
 * Made by cbindgen from crates/ffi: change it there. MIT or Apache-2.0.
 *
 * Answers. Every function but a few answers a wollemi_status: WOLLEMI_OK; below 16 a plain "no" (WOLLEMI_NOT_FOUND,
 * WOLLEMI_UNCHANGED, WOLLEMI_TOO_SMALL); from 16 on a failure, which wollemi_message() explains on the same thread. A
 * call that failed has changed nothing, except for WOLLEMI_ERROR_UNFINISHED and WOLLEMI_ERROR_NOT_DURABLE, if nothing
 * else is said. Where a call does not answer WOLLEMI_OK, the places for its other answers hold NULL or 0, if nothing
 * else is said. These places are cleared first: what a call reads must not overlap them. No panic
 * and no exception leaves the library, and it never exits, aborts on its own account or prints, except for the text of
 * a panic (WOLLEMI_ERROR_BUG) on the standard error.
 *
 * Handles. What is opened, begun or taken is a handle, to be closed or freed by the function that its own names, once,
 * after a failed commit too. Closing in any order is right: the object behind a handle lives as long as another handle
 * needs it. Every call looks at its handles: NULL answers WOLLEMI_ERROR_ARGUMENT; a handle that is closed, or of
 * another kind, WOLLEMI_ERROR_HANDLE. A closed one is known as such until at least 64 others of its kind have been
 * closed after it. A pointer that was never a handle cannot be detected: that is undefined, as are too short a buffer
 * and wrong lengths.
 *
 * Threads. Databases, maps and snapshots may be used from any number of threads at once. A cursor, a batch, a
 * transaction, a sweeper and options are for one thread at a time, any; when two calls use one at once, one of them
 * answers WOLLEMI_ERROR_THREADS. No handle may be closed while another thread is in a call with it. Messages are each
 * thread's own. After fork() the child must not use the library's handles.
 *
 * Memory. Keys and values that are passed in are copied, or used up, before the call returns. Values that are passed
 * out are the caller's, to be given back by wollemi_free(), except for those of a cursor, which it keeps until its
 * next call, and the one that wollemi_read() shows. Keys are any 0 to 65535 bytes, values any up to 64 MiB; NULL is a
 * fine address for 0 bytes. Values of eight bytes are updated in place.
 *
 * Durability. A write that has returned survives the end of the process, kill -9 included, and the loss of power if
 * the database's level is `disk` or `power`: wollemi_level.
 */


#ifndef WOLLEMI_H
#define WOLLEMI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// The version of this header. wollemi_check_version() compares it with the library's.
#define WOLLEMI_VERSION_MAJOR 0

// See WOLLEMI_VERSION_MAJOR.
#define WOLLEMI_VERSION_MINOR 1

// See WOLLEMI_VERSION_MAJOR.
#define WOLLEMI_VERSION_PATCH 0

// In wollemi_range::flags: the range begins behind the key `from`.
#define WOLLEMI_FROM_EXCLUDED 1

// In wollemi_range::flags: the range ends with the key `to`, and not before it.
#define WOLLEMI_TO_INCLUDED 2

// What a call answers. The numbers stay as they are from version to version; new ones may be added. Below 16 nothing
// is wrong: the answer is "yes" or a plain "no". From 16 on the call has failed, and wollemi_message() says why.
typedef enum {
    // Done.
    WOLLEMI_OK = 0,
    // There is no such key or map, or the cursor has come to its end.
    WOLLEMI_NOT_FOUND = 1,
    // Nothing was changed, since what is there is not what the call asks for: an insert of a key that is present, an
    // update of one that is absent, a compare-and-swap or a batch that expected something else.
    WOLLEMI_UNCHANGED = 2,
    // The value is longer than the caller's buffer. Its length was returned.
    WOLLEMI_TOO_SMALL = 3,
    // An argument cannot be: NULL where something must be, text that is not UTF-8, a number that means nothing.
    WOLLEMI_ERROR_ARGUMENT = 16,
    // The handle is closed, or of another kind.
    WOLLEMI_ERROR_HANDLE = 17,
    // The handle is for one thread at a time, and another call is using it.
    WOLLEMI_ERROR_THREADS = 18,
    // The library has met a mistake of its own. Please report it, with the message.
    WOLLEMI_ERROR_BUG = 19,
    // Another process, or another handle of this one, has the pool open.
    WOLLEMI_ERROR_BUSY = 20,
    // There is no such file.
    WOLLEMI_ERROR_MISSING = 21,
    // The file is no pool, or no file at all.
    WOLLEMI_ERROR_NOT_A_POOL = 22,
    // The file, or a map in it, is of a newer version, or of an index that this library does not have.
    WOLLEMI_ERROR_UNSUPPORTED = 23,
    // The pool, its log or its checkpoint is damaged.
    WOLLEMI_ERROR_DAMAGED = 24,
    // The file may not be read or written.
    WOLLEMI_ERROR_DENIED = 25,
    // The level that was asked for cannot be had there.
    WOLLEMI_ERROR_LEVEL = 26,
    // The machine stopped while the pool was open at level `process`: see wollemi_options_set_after_power_loss().
    WOLLEMI_ERROR_POWER_LOSS = 27,
    // There is no room: on the disk, within the pool's size, or within a log's limit. Nothing was changed.
    WOLLEMI_ERROR_FULL = 28,
    // The operating system has refused something else.
    WOLLEMI_ERROR_SYSTEM = 29,
    // A key, a value or a name is too long, or a name is empty.
    WOLLEMI_ERROR_LENGTH = 30,
    // The map's index has no order of keys, and a range was asked for.
    WOLLEMI_ERROR_UNORDERED = 31,
    // The database was opened to be read.
    WOLLEMI_ERROR_READ_ONLY = 32,
    // The map has other handles, or there is a snapshot.
    WOLLEMI_ERROR_IN_USE = 33,
    // The map is held by another index than the one that was asked for.
    WOLLEMI_ERROR_OTHER_INDEX = 34,
    // The map is of another database than the batch, the transaction or the snapshot.
    WOLLEMI_ERROR_OTHER_DATABASE = 35,
    // Another writer has changed what the transaction has read. Nothing was changed. wollemi_conflict() returns the
    // key.
    WOLLEMI_ERROR_CONFLICT = 36,
    // The changes are committed, and the next opening completes them, given room; until then nothing can be written.
    WOLLEMI_ERROR_UNFINISHED = 37,
    // The change was made, or seen, and it is not known whether it survives a loss of power: the disk has failed. At
    // level `disk` only.
    WOLLEMI_ERROR_NOT_DURABLE = 38,
    // The map holds values that were not put by the functions for maps whose entries expire.
    WOLLEMI_ERROR_NOT_EXPIRING = 39,
    // The snapshot would need more memory than it may have: it shows nothing any more.
    WOLLEMI_ERROR_SNAPSHOT = 40,
    // Something else. The message says what.
    WOLLEMI_ERROR_OTHER = 41,
} wollemi_status;

// What acknowledged writes survive.
typedef enum {
    // The end of the process, however it comes. Any file will do.
    WOLLEMI_LEVEL_PROCESS = 0,
    // Also the loss of power, by a log beside the pool: each write waits for the disk, unless it is WOLLEMI_EVENTUAL.
    WOLLEMI_LEVEL_DISK = 1,
    // Also the loss of power, on persistent memory, which needs no log.
    WOLLEMI_LEVEL_POWER = 2,
} wollemi_level;

// When a write is durable, in a database of level `disk`.
typedef enum {
    // When it returns.
    WOLLEMI_IMMEDIATE = 0,
    // Within the time of wollemi_options_set_sync_within(), and when a later wollemi_sync() or immediate write
    // returns. It survives the end of the process at once.
    WOLLEMI_EVENTUAL = 1,
} wollemi_durability;

// What to do with a pool of level `process` that was open when the machine stopped.
typedef enum {
    // Refuse to open it.
    WOLLEMI_REFUSE = 0,
    // Open it to look at what is left, if it is opened to be read. It stays suspect.
    WOLLEMI_LOOK = 1,
    // Open it, and let it be used from now on. Check it before that.
    WOLLEMI_ACCEPT = 2,
} wollemi_after_power_loss;

// Changes that are made together: wollemi_batch_new(). For one thread at a time.
typedef struct wollemi_batch wollemi_batch;

// A place in a range of entries: wollemi_map_range() and its siblings. For one thread at a time.
typedef struct wollemi_cursor wollemi_cursor;

// A database: wollemi_open(). For any number of threads at once.
typedef struct wollemi_db wollemi_db;

// A map of a database: wollemi_map_open(). For any number of threads at once.
typedef struct wollemi_map wollemi_map;

// Options of an opening: wollemi_options_new(). For one thread at a time.
typedef struct wollemi_options wollemi_options;

// All maps at one moment: wollemi_snapshot_take(). For any number of threads at once.
typedef struct wollemi_snapshot wollemi_snapshot;

// A thread that removes entries past their end: wollemi_sweeper_start(). For one thread at a time.
typedef struct wollemi_sweeper wollemi_sweeper;

// Reads and changes that happen together: wollemi_transaction_begin(). For one thread at a time.
typedef struct wollemi_transaction wollemi_transaction;

// Numbers of a database at one moment: wollemi_stats(). wollemi_stats_json() has more.
typedef struct {
    // A wollemi_level.
    uint32_t level;
    // How often the pool has been opened.
    uint32_t generation;
    // How often it was not closed properly.
    uint64_t crashes;
    // Bytes of the pool.
    uint64_t reserved;
    // Bytes of these in use.
    uint64_t used;
    // Bytes ready for use.
    uint64_t free;
    // Bytes of which it is not known yet whether they are used or free.
    uint64_t unswept;
    // The size up to which the pool may grow.
    uint64_t max_size;
    // Maps.
    uint64_t maps;
    // How long the opening took, in seconds.
    double opened_in;
} wollemi_numbers;

// Is shown a map's name and the name of its index: wollemi_maps(). Anything but 0 ends it.
typedef int (*wollemi_show_map)(const char *name, const char *index, void *argument);

// Is shown a value, for the time of the call: wollemi_read().
typedef void (*wollemi_show)(const void *value, size_t value_len, void *argument);

// Bytes of the caller's, for wollemi_multi_get().
typedef struct {
    // Where they are.
    const void *data;
    // How many.
    size_t len;
} wollemi_slice;

// Bytes of the library's. `data` is given back by wollemi_free(); it is NULL where there is no value, and not NULL for
// a value of no bytes.
typedef struct {
    // Where they are.
    void *data;
    // How many.
    size_t len;
} wollemi_bytes;

// The keys between two bounds. All zeros are all keys, as is NULL in place of a wollemi_range.
typedef struct {
    // The least key, WOLLEMI_FROM_EXCLUDED: the key before the least one; NULL: no bound.
    const void *from;
    // Its bytes.
    size_t from_len;
    // The key behind the greatest one, WOLLEMI_TO_INCLUDED: the greatest one; NULL: no bound.
    const void *to;
    // Its bytes.
    size_t to_len;
    // What the keys begin with, beside the bounds above; NULL: anything.
    const void *prefix;
    // Its bytes.
    size_t prefix_len;
    // WOLLEMI_FROM_EXCLUDED, WOLLEMI_TO_INCLUDED, both or 0.
    uint32_t flags;
} wollemi_range;

// The body of a transaction: wollemi_transact(). Anything but WOLLEMI_OK gives it up.
typedef int (*wollemi_body)(wollemi_transaction *transaction, void *argument);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Why the last call that failed on this thread has failed: a sentence in English, with the names of what was
// concerned. Empty if none has failed. It stays until the next call that fails on this thread.
const char *wollemi_message(void);

// The name of a status in a few words: "conflict" for WOLLEMI_ERROR_CONFLICT. Never NULL, and there for good.
const char *wollemi_status_name(int status);

// The key, and the name of its map, for which the last call on this thread failed with WOLLEMI_ERROR_CONFLICT. Returns
// WOLLEMI_NOT_FOUND if the last call that failed did so for another reason. The pointers stay valid until the next
// call that fails on this thread. `map`, `key` and `key_len` may be NULL.
wollemi_status wollemi_conflict(const char **map, const void **key, size_t *key_len);

// Gives back what a call has given out to be given back so: values, and texts in JSON. NULL is nothing to give back.
// It is the C library's free() where the program and this library share one, as they do on Linux.
void wollemi_free(void *data);

// New options, the defaults: level `process`, the index `roart`, one recovery thread, a pool that is created if it is
// not there. Free them by wollemi_options_free(); one set of options may serve any number of openings.
wollemi_status wollemi_options_new(wollemi_options **options);

// Frees options. NULL is nothing to free.
wollemi_status wollemi_options_free(wollemi_options *options);

// The minimum level, a wollemi_level. Opening fails with WOLLEMI_ERROR_LEVEL where the file cannot give it. A pool
// that has a log keeps it, whatever is asked for.
wollemi_status wollemi_options_set_level(wollemi_options *options, int level);

// The index that holds the maps to be made, by name: "roart" (the default), "part", "clht", "hot", "masstree", "wort",
// "woart", "art-cow" or "dptree". A map that is there is opened as what it is.
wollemi_status wollemi_options_set_index(wollemi_options *options, const char *index);

// The size up to which the pool may grow, in bytes. This much address space is reserved; blocks are taken only as they
// are needed. Default: 1 TiB, or what the system allows.
wollemi_status wollemi_options_set_max_size(wollemi_options *options, uint64_t bytes);

// The page of the heap in bytes, for pools that are created: a power of two from 64 KiB to 128 MiB. Default: 256 KiB.
wollemi_status wollemi_options_set_page_size(wollemi_options *options, uint64_t bytes);

// How many background threads look for unused space after the opening. With none, space from before the opening is not
// reused. Default: 1.
wollemi_status wollemi_options_set_recovery_threads(wollemi_options *options, size_t threads);

// Whether to open the pool to be read: no byte of its file changes, and others may read it at the same time. Writes
// fail with WOLLEMI_ERROR_READ_ONLY. Default: no.
wollemi_status wollemi_options_set_read_only(wollemi_options *options, bool read_only);

// Whether to create the pool if there is no such file. Default: yes. If not, opening fails with WOLLEMI_ERROR_MISSING.
wollemi_status wollemi_options_set_create(wollemi_options *options, bool create);

// How long an opening waits, in milliseconds, for other processes that have the pool open. One that was killed keeps
// its pool for some tens of milliseconds. Then it fails with WOLLEMI_ERROR_BUSY. Default: 2000.
wollemi_status wollemi_options_set_lock_wait(wollemi_options *options, uint64_t milliseconds);

// When writes are durable that say nothing else, at level `disk`: a wollemi_durability. Default: WOLLEMI_IMMEDIATE.
wollemi_status wollemi_options_set_durability(wollemi_options *options, int durability);

// Within how many milliseconds writes that are WOLLEMI_EVENTUAL are durable, at level `disk`. Default: 1000.
wollemi_status wollemi_options_set_sync_within(wollemi_options *options, uint64_t milliseconds);

// How long the log of a database of level `disk` may be, in bytes; 64 MiB at least. Default: 256 MiB.
wollemi_status wollemi_options_set_log_limit(wollemi_options *options, uint64_t bytes);

// What to do with a pool of level `process` that was open when the machine stopped: a wollemi_after_power_loss.
// Default: WOLLEMI_REFUSE, with WOLLEMI_ERROR_POWER_LOSS.
wollemi_status wollemi_options_set_after_power_loss(wollemi_options *options, int what);

// The version of the library, as "0.1.0". There for good.
const char *wollemi_version(void);

// Whether the library is one that a program can use that was compiled with a header of this version: pass
// WOLLEMI_VERSION_MAJOR and WOLLEMI_VERSION_MINOR. Answers WOLLEMI_OK or WOLLEMI_ERROR_UNSUPPORTED.
wollemi_status wollemi_check_version(uint32_t major, uint32_t minor);

// Opens the database in the file `path`, as `options` say; NULL: with the defaults, so that it is created if it is not
// there. Close it by wollemi_close().
//
// One process at a time has a pool open, and that process once. After wollemi_close() of all of its handles, or kill
// -9, the next opening takes a millisecond, at whatever size (except for a database of level `disk` after a loss of
// power, which is built anew). Signals are not touched. A program that forks must not use the database in the child.
wollemi_status wollemi_open(const char *path, const wollemi_options *options, wollemi_db **db);

// Opens a database in memory, which goes with its last handle. `options` as for wollemi_open().
wollemi_status wollemi_open_in_memory(const wollemi_options *options, wollemi_db **db);

// Closes the handle. The pool itself is closed, and written to its file, when every handle of it is: of its maps, its
// cursors, batches, transactions, snapshots and sweepers too, in any order. A program that ends without that loses
// nothing that was acknowledged. NULL is nothing to close.
wollemi_status wollemi_close(wollemi_db *db);

// What acknowledged writes of this database survive: a wollemi_level in `level`.
wollemi_status wollemi_get_level(const wollemi_db *db, int *level);

// Returns when all writes that have returned are durable at the database's level, those that are WOLLEMI_EVENTUAL too.
// At the levels `process` and `power` they are already.
wollemi_status wollemi_sync(const wollemi_db *db);

// Takes a checkpoint, so that the log can forget what was written before; with `full` of all entries, else of what has
// changed, where that is less. The database takes them by itself too. Does nothing at other levels than `disk`.
wollemi_status wollemi_checkpoint(const wollemi_db *db, bool full);

// Waits until the search for unused space that follows an opening has ended. Nothing else needs to wait for it.
wollemi_status wollemi_wait_recovered(const wollemi_db *db);

// Gives the free pages of the file back to its file system; in `bytes`, which may be NULL, how many bytes these were.
wollemi_status wollemi_give_back(const wollemi_db *db, uint64_t *bytes);

// Numbers of the database. `size` is sizeof(wollemi_numbers): a later version may have more of them, and fills as many
// as the program knows.
wollemi_status wollemi_stats(const wollemi_db *db, wollemi_numbers *numbers, size_t size);

// All statistics that the database has without walking its maps, as a JSON object. Give it back by wollemi_free().
wollemi_status wollemi_stats_json(const wollemi_db *db, char **json);

// Walks everything and looks for damage: WOLLEMI_OK, or WOLLEMI_ERROR_DAMAGED where some was found. No thread may
// write meanwhile, or damage may be reported that is none. In `json`, which may be NULL, the report as a JSON object,
// to be given back by wollemi_free().
wollemi_status wollemi_check(const wollemi_db *db, char **json);

// Shows all maps, in the order of their names, until `show` answers something else than 0.
wollemi_status wollemi_maps(const wollemi_db *db, wollemi_show_map show, void *argument);

// Opens the map of this name; it is created if it is not there, with the index that the options name. Close it by
// wollemi_map_close(). A name has 1 to 240 bytes of UTF-8.
wollemi_status wollemi_map_open(const wollemi_db *db, const char *name, wollemi_map **map);

// As wollemi_map_open(), of a map that the index of this name holds: WOLLEMI_ERROR_OTHER_INDEX where another one does.
wollemi_status wollemi_map_open_with(const wollemi_db *db, const char *name, const char *index, wollemi_map **map);

// Opens the map of this name, if there is one: else WOLLEMI_NOT_FOUND, and `map` is NULL.
wollemi_status wollemi_map_find(const wollemi_db *db, const char *name, wollemi_map **map);

// Another handle of the map, whose writes are durable as `durability` says, a wollemi_durability. It counts at level
// `disk` alone. Close it by wollemi_map_close().
wollemi_status wollemi_map_with_durability(const wollemi_map *map, int durability, wollemi_map **other);

// Closes the handle. The map stays. NULL is nothing to close.
wollemi_status wollemi_map_close(wollemi_map *map);

// Removes the map of this name and all that it holds, by one durable step: WOLLEMI_NOT_FOUND if there is none,
// WOLLEMI_ERROR_IN_USE while there is a handle to it, or any snapshot. Giving back its space takes time in proportion
// to its size. WOLLEMI_ERROR_DAMAGED may come when the map is gone already: the next recovery then finds the space that
// was not given back.
wollemi_status wollemi_map_drop(const wollemi_db *db, const char *name);

// Counts the entries, by visiting each of them. Exact if no thread writes meanwhile.
wollemi_status wollemi_count(const wollemi_map *map, uint64_t *count);

// The key's value, copied into `*value`, with its length in `*value_len`: WOLLEMI_NOT_FOUND if the key is absent. Give
// the copy back by wollemi_free().
wollemi_status wollemi_get(const wollemi_map *map, const void *key, size_t key_len, void **value, size_t *value_len);

// The key's value, copied into the caller's room for `room_len` bytes, with its length in `*value_len`.
// WOLLEMI_TOO_SMALL if there is not enough room: then nothing is copied. WOLLEMI_NOT_FOUND if the key is absent.
// Allocates nothing.
wollemi_status wollemi_get_into(const wollemi_map *map,
                                const void *key,
                                size_t key_len,
                                void *room,
                                size_t room_len,
                                size_t *value_len);

// Calls `show` with the key's value where it lies, without a copy; WOLLEMI_NOT_FOUND if the key is absent. `show` must
// not keep the pointer, nor call the library, nor leave by longjmp() or an exception. Keep it short: what is removed
// meanwhile is not reused before it has returned.
wollemi_status wollemi_read(const wollemi_map *map, const void *key, size_t key_len, wollemi_show show, void *argument);

// Whether the key is there: WOLLEMI_OK or WOLLEMI_NOT_FOUND.
wollemi_status wollemi_contains(const wollemi_map *map, const void *key, size_t key_len);

// The values of `count` keys, copied into as many `values`, in the keys' order: `data` is NULL where the key is
// absent. Give each back by wollemi_free(). Faster than as many wollemi_get()s. If it fails, no value is left to give
// back.
wollemi_status wollemi_multi_get(const wollemi_map *map,
                                 size_t count,
                                 const wollemi_slice *keys,
                                 wollemi_bytes *values);

// Gives the key this value, whether it is there or not. Durable, at the database's level, when it returns.
wollemi_status wollemi_put(const wollemi_map *map,
                           const void *key,
                           size_t key_len,
                           const void *value,
                           size_t value_len);

// Adds the key if it is absent: else WOLLEMI_UNCHANGED.
wollemi_status wollemi_insert(const wollemi_map *map,
                              const void *key,
                              size_t key_len,
                              const void *value,
                              size_t value_len);

// Changes the value of a key that is there: else WOLLEMI_UNCHANGED.
wollemi_status wollemi_update(const wollemi_map *map,
                              const void *key,
                              size_t key_len,
                              const void *value,
                              size_t value_len);

// Removes the key: WOLLEMI_NOT_FOUND if it is absent.
wollemi_status wollemi_delete(const wollemi_map *map, const void *key, size_t key_len);

// Replaces the value `expected` of the key by `desired`; NULL in place of either: absent. WOLLEMI_UNCHANGED if the key
// holds something else.
wollemi_status wollemi_compare_and_swap(const wollemi_map *map,
                                        const void *key,
                                        size_t key_len,
                                        const void *expected,
                                        size_t expected_len,
                                        const void *desired,
                                        size_t desired_len);

// A cursor over the entries of a map whose keys are in `range`. It shows every key that is there throughout, once, and
// not one moment: a snapshot's cursor does. Writers and the cursor do not wait for each other. Free it by
// wollemi_cursor_free().
wollemi_status wollemi_map_range(const wollemi_map *map, const wollemi_range *range, wollemi_cursor **cursor);

// The next entry in ascending order: WOLLEMI_NOT_FOUND if none is left. The key and value that it returns stay valid
// until the next call with this cursor; each output may be NULL. Where the index has no order of keys, entries come in
// one of its own.
wollemi_status wollemi_cursor_next(wollemi_cursor *cursor,
                                   const void **key,
                                   size_t *key_len,
                                   const void **value,
                                   size_t *value_len);

// The next entry in descending order, from the end of the range. A cursor may be asked from both ends in any order:
// each entry is shown once, and when both have met, nothing is left.
wollemi_status wollemi_cursor_next_back(wollemi_cursor *cursor,
                                        const void **key,
                                        size_t *key_len,
                                        const void **value,
                                        size_t *value_len);

// Frees a cursor. NULL is nothing to free.
wollemi_status wollemi_cursor_free(wollemi_cursor *cursor);

// A batch of changes to any of the maps, all of which happen or none, whatever crash comes. Readers may see some of
// them before others, snapshots and transactions do not. The last of several changes of one key counts. Free it by
// wollemi_batch_free(), committed or not.
wollemi_status wollemi_batch_new(const wollemi_db *db, wollemi_batch **batch);

// The key shall have this value. The bytes are copied.
wollemi_status wollemi_batch_put(wollemi_batch *batch,
                                 const wollemi_map *map,
                                 const void *key,
                                 size_t key_len,
                                 const void *value,
                                 size_t value_len);

// The key shall be absent.
wollemi_status wollemi_batch_delete(wollemi_batch *batch, const wollemi_map *map, const void *key, size_t key_len);

// The batch shall be carried out only if the key has this value before it; NULL: only if it is absent.
wollemi_status wollemi_batch_expect(wollemi_batch *batch,
                                    const wollemi_map *map,
                                    const void *key,
                                    size_t key_len,
                                    const void *value,
                                    size_t value_len);

// When the batch is durable, at level `disk`: a wollemi_durability.
wollemi_status wollemi_batch_set_durability(wollemi_batch *batch, int durability);

// Carries the batch out: it is durable when this returns. WOLLEMI_UNCHANGED, and nothing was changed, if something is
// not as it was expected. Afterwards, whatever this returns, the batch can only be freed.
wollemi_status wollemi_batch_commit(wollemi_batch *batch);

// Frees a batch. One that was not committed has done nothing. NULL is nothing to free.
wollemi_status wollemi_batch_free(wollemi_batch *batch);

// Gives the key this value for `life_ms` milliseconds, after which it is absent; less than 0: without expiry. The
// clock is the system's, and ends survive crashes. A map is used by these functions or by the others, not by both: its
// values are stored behind eight bytes with their expiry. An expired entry takes space until its key is written or a
// sweeper comes by: wollemi_sweeper_start().
wollemi_status wollemi_expiring_put(const wollemi_map *map,
                                    const void *key,
                                    size_t key_len,
                                    const void *value,
                                    size_t value_len,
                                    int64_t life_ms);

// As wollemi_expiring_put(), if no key is there that has not expired: else WOLLEMI_UNCHANGED.
wollemi_status wollemi_expiring_insert(const wollemi_map *map,
                                       const void *key,
                                       size_t key_len,
                                       const void *value,
                                       size_t value_len,
                                       int64_t life_ms);

// As wollemi_get(), of a key that has not expired. In `*life_ms`, which may be NULL, the milliseconds that are left of
// its life; -1: it has no end.
wollemi_status wollemi_expiring_get(const wollemi_map *map,
                                    const void *key,
                                    size_t key_len,
                                    void **value,
                                    size_t *value_len,
                                    int64_t *life_ms);

// Gives a key that has not expired another life from now on: WOLLEMI_NOT_FOUND if there is no such key.
wollemi_status wollemi_expiring_touch(const wollemi_map *map, const void *key, size_t key_len, int64_t life_ms);

// Removes the key: WOLLEMI_NOT_FOUND if there was none that has not expired.
wollemi_status wollemi_expiring_delete(const wollemi_map *map, const void *key, size_t key_len);

// As wollemi_map_range(), over the entries that have not expired when the cursor comes to them.
wollemi_status wollemi_expiring_range(const wollemi_map *map, const wollemi_range *range, wollemi_cursor **cursor);

// Starts a thread that goes through the map, removes what has expired, rests for `pause_ms` milliseconds, and begins
// again, until wollemi_sweeper_stop(). It keeps the database open. It blocks no signals.
wollemi_status wollemi_sweeper_start(const wollemi_map *map, uint64_t pause_ms, wollemi_sweeper **sweeper);

// Stops a sweeper and waits for its thread. NULL is nothing to stop.
wollemi_status wollemi_sweeper_stop(wollemi_sweeper *sweeper);

// Takes a snapshot: all maps as they are now, to be read while others write. Nothing is copied at first; of each key
// that is changed meanwhile, what it held is kept in memory, up to `max_memory` bytes; 0: any number. With more than
// that its reads fail with WOLLEMI_ERROR_SNAPSHOT, and writers go on. No map can be dropped before it is freed, by
// wollemi_snapshot_free().
wollemi_status wollemi_snapshot_take(const wollemi_db *db, uint64_t max_memory, wollemi_snapshot **snapshot);

// As wollemi_get(), of what the key held.
wollemi_status wollemi_snapshot_get(const wollemi_snapshot *snapshot,
                                    const wollemi_map *map,
                                    const void *key,
                                    size_t key_len,
                                    void **value,
                                    size_t *value_len);

// A cursor over the entries that a map had. It may outlive the snapshot's handle, whose memory it keeps.
wollemi_status wollemi_snapshot_range(const wollemi_snapshot *snapshot,
                                      const wollemi_map *map,
                                      const wollemi_range *range,
                                      wollemi_cursor **cursor);

// Writes a backup of all maps, as they were, to a new file, which has its name when it is whole and on the disk; until
// then it has a name of its own. Where that fails, no file is left. `wollemi restore` makes a pool of it.
wollemi_status wollemi_snapshot_backup(const wollemi_snapshot *snapshot, const char *path);

// Roughly the bytes of memory that a snapshot takes for what was changed since.
wollemi_status wollemi_snapshot_memory(const wollemi_snapshot *snapshot, uint64_t *bytes);

// Frees a snapshot. NULL is nothing to free.
wollemi_status wollemi_snapshot_free(wollemi_snapshot *snapshot);

// Begins a transaction: reads and changes of any maps that happen together, as at one moment, or not at all. It is
// optimistic: while it runs no thread waits for it, and its commit fails with WOLLEMI_ERROR_CONFLICT if another writer
// has changed what it has read. Begin it again then, or have wollemi_transact() do so. It sees its own changes. Free
// it by wollemi_transaction_free(), committed or not; one that was not committed has done nothing.
wollemi_status wollemi_transaction_begin(const wollemi_db *db, wollemi_transaction **transaction);

// As wollemi_get(), in the transaction. The key counts as read, present or not. WOLLEMI_ERROR_CONFLICT where it is
// certain by now that the transaction cannot be committed.
wollemi_status wollemi_transaction_get(wollemi_transaction *transaction,
                                       const wollemi_map *map,
                                       const void *key,
                                       size_t key_len,
                                       void **value,
                                       size_t *value_len);

// As wollemi_put(), in the transaction. A key or a value that is too long is an error of the commit.
wollemi_status wollemi_transaction_put(wollemi_transaction *transaction,
                                       const wollemi_map *map,
                                       const void *key,
                                       size_t key_len,
                                       const void *value,
                                       size_t value_len);

// As wollemi_insert(), in the transaction. The key counts as read.
wollemi_status wollemi_transaction_insert(wollemi_transaction *transaction,
                                          const wollemi_map *map,
                                          const void *key,
                                          size_t key_len,
                                          const void *value,
                                          size_t value_len);

// As wollemi_delete(), in the transaction. The key counts as read.
wollemi_status wollemi_transaction_delete(wollemi_transaction *transaction,
                                          const wollemi_map *map,
                                          const void *key,
                                          size_t key_len);

// A cursor over the entries of a map as the transaction sees them, with its own changes, also those that it makes
// between two steps. Entries that the cursor has returned count as read, and so do the gaps between them; later
// entries do not. When the transaction is over, the cursor answers WOLLEMI_ERROR_HANDLE. Free it by
// wollemi_cursor_free(), before the transaction or after it.
wollemi_status wollemi_transaction_range(wollemi_transaction *transaction,
                                         const wollemi_map *map,
                                         const wollemi_range *range,
                                         wollemi_cursor **cursor);

// When the transaction is durable, at level `disk`: a wollemi_durability.
wollemi_status wollemi_transaction_set_durability(wollemi_transaction *transaction, int durability);

// Commits the transaction, if what it has read is still so: it is durable when this returns. WOLLEMI_ERROR_CONFLICT,
// and nothing was changed, if not; wollemi_conflict() returns the key. Afterwards, whatever this returns, the
// transaction can only be freed.
wollemi_status wollemi_transaction_commit(wollemi_transaction *transaction);

// Frees a transaction. One that was not committed has done nothing. NULL is nothing to free.
wollemi_status wollemi_transaction_free(wollemi_transaction *transaction);

// Runs `body` with a transaction and commits it, and does so again after a conflict, up to a hundred times with pauses
// in between. `body` answers WOLLEMI_OK to have it committed. Any other answer gives it up: nothing is changed, and
// wollemi_transact() answers the same, or WOLLEMI_ERROR_ARGUMENT if that is no status. WOLLEMI_ERROR_CONFLICT from a
// call with the transaction should be passed on so: then it is run again. `body` must neither commit nor free the
// transaction, nor leave by longjmp() or an exception; it must bear to be run more than once.
wollemi_status wollemi_transact(const wollemi_db *db, wollemi_body body, void *argument);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WOLLEMI_H */

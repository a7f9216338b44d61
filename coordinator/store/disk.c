/* disk.c - room on the disk that is kept for the records of running jobs.
 *
 * A write-ahead log is a file that commits append to, and that begins anew once its pages are in
 * the database. Here it has all its blocks from the start, so commits succeed on a full disk. There
 * the pages cannot leave the log, which is how a shortage is noticed; what is left of it then is
 * for what is under way. A commit fails for lack of space only if more is put at once than
 * STORE_TURN_BYTES. */
#include <errno.h>
#include <stdlib.h>

#include "common/base/memory.h"
#include "coordinator/store/internal.h"

#define LOG_BYTES ((sqlite3_int64)32 << 20)
#define PAGES_MOVED 1000 /* pages in the log from which on they are moved, as SQLite does it */
#define LOOK_MS 2000

static int room_keep_pages(void *data, sqlite3 *db, const char *name, int pages)
{
    struct room *room = data;
    (void)db, (void)name;
    room->pages = pages;
    return SQLITE_OK;
}

static sqlite3_file *room_log(const struct sql *sql)
{
    sqlite3_file *file = NULL;
    sqlite3_file_control(sql->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
    return file && file->pMethods ? file : NULL;
}

/* Whether the disk, or the owner's share of it, is full. */
static bool room_is_full(const struct sql *sql, int code)
{
    int system = sqlite3_system_errno(sql->db);
    return (code & 0xff) == SQLITE_FULL ||
           (code == SQLITE_IOERR_WRITE &&
            (system == ENOSPC || system == EDQUOT || system == EFBIG));
}

/* Give the log its blocks; returns whether it has them. */
static bool room_reserve(struct store *store)
{
    sqlite3_file *file = room_log(&store->sql);
    sqlite3_int64 want = LOG_BYTES;
    int chunk = (int)LOG_BYTES;
    if (!file)
        return false;
    file->pMethods->xFileControl(file, SQLITE_FCNTL_CHUNK_SIZE, &chunk);
    int code = file->pMethods->xFileControl(file, SQLITE_FCNTL_SIZE_HINT, &want);
    if (file->pMethods->xFileSize(file, &store->room.bytes) != SQLITE_OK)
        store->room.bytes = 0;
    return code == SQLITE_OK && store->room.bytes >= LOG_BYTES;
}

/* Move the log's pages into the database; returns whether there was room for them. */
static bool room_move_pages(struct store *store)
{
    struct sql *sql = &store->sql;
    int pages = 0, moved = 0;
    int code = sqlite3_wal_checkpoint_v2(sql->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &moved);
    if (code == SQLITE_OK && moved >= pages)
        store->room.pages = 0; /* the next commit begins it anew */
    else if (code == SQLITE_OK)
        store->room.pages = pages;
    else if (!room_is_full(sql, code))
        sql_fail(sql, -EIO, "move what was written into the database: %s", sqlite3_errstr(code));
    return code == SQLITE_OK;
}

void room_open(struct store *store)
{
    if (store->sql.rc != 0)
        return;
    sqlite3_wal_hook(store->sql.db, room_keep_pages, &store->room);
    sqlite3_stmt *statement = sql_bind(&store->sql, "PRAGMA page_size", "");
    if (sql_step(&store->sql, statement)) {
        store->room.page_bytes = (sqlite3_int64)sql_number(statement, 0);
        sql_leave(statement);
    }
    store->room.path = xstrdup(sqlite3_db_filename(store->sql.db, "main"));
    bool moved = room_move_pages(store);
    store->room.full = !room_reserve(store) || !moved;
}

void room_close(struct store *store)
{
    free(store->room.path);
}

void room_after_commit(struct store *store)
{
    if (store->sql.rc == 0 && !store->room.full && store->room.pages >= PAGES_MOVED)
        store->room.full = !room_move_pages(store);
}

enum store_room store_room(struct store *store, uint64_t now_ms, struct error *err)
{
    struct room *room = &store->room;
    if (room->full && !store->sql.inside && now_ms >= room->looked_ms + LOOK_MS) {
        room->looked_ms = now_ms;
        bool moved = room_move_pages(store);
        room->full = !room_reserve(store) || !moved;
    }
    if (!room->full)
        return STORE_ROOM_ENOUGH;
    error_set(err, -ENOSPC, "no space is left on the disk of %s: make room there", room->path);
    sqlite3_int64 frame_bytes = room->page_bytes + 24; /* with its header */
    return room->bytes - room->pages * frame_bytes < STORE_TURN_BYTES ? STORE_ROOM_NONE
                                                                      : STORE_ROOM_LITTLE;
}

uint64_t store_room_next_ms(const struct store *store)
{
    return store->room.full ? store->room.looked_ms + LOOK_MS : UINT64_MAX;
}

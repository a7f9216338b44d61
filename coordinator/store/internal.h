/* internal.h - shared by the files of store/; not for others. */
#ifndef COORDINATOR_STORE_INTERNAL_H
#define COORDINATOR_STORE_INTERNAL_H

#include "coordinator/store/sql.h"
#include "coordinator/store/store.h"

struct room {
    char *path;                      /* of the database */
    sqlite3_int64 bytes, page_bytes; /* the log's size, that of its pages */
    int pages;                       /* in the log, from its beginning */
    bool full;                       /* the disk is */
    uint64_t looked_ms;
};

struct store {
    struct sql sql;
    struct room room;
    uint64_t cluster;
    struct histogram commit_ns;
};

/* store.c: the path of the database in a folder, to be freed. */
char *store_path(const char *directory);

/* disk.c: begin and cease to keep room; and move what a commit has written, when it is time. */
void room_open(struct store *store);
void room_close(struct store *store);
void room_after_commit(struct store *store);

#endif

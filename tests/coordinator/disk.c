/* disk.c - a VFS of SQLite's: each file is two arrays, what is read and what would survive. */
#include "tests/coordinator/disk.h"

#include <check.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"

#define FILES_MAX 8

struct image {
    unsigned char *bytes;
    size_t size, capacity;
};

struct disk_file {
    char *name; /* NULL: free */
    struct image now, synced;
    size_t reserved;  /* has room for so many bytes, whatever else is full */
    bool log;         /* a journal: SQLite syncs the folder with the first sync of a new one */
    bool there, kept; /* its name: now, and after a loss of power */
};

static struct {
    struct disk_file files[FILES_MAX];
    enum disk_fault fault;
    size_t left; /* operations until it shows */
    bool shown;
} disk;

struct handle {
    sqlite3_file base;
    struct disk_file *file;
};

static sqlite3_vfs *real;

static void image_reserve(struct image *image, size_t size)
{
    size_t capacity = image->capacity > 0 ? image->capacity : 4096;
    while (capacity < size)
        capacity *= 2;
    if (capacity > image->capacity)
        image->bytes = xrealloc(image->bytes, capacity);
    image->capacity = capacity;
}

static void image_copy(struct image *to, const struct image *from)
{
    image_reserve(to, from->size);
    to->size = from->size;
    if (from->size > 0)
        memcpy(to->bytes, from->bytes, from->size);
}

static struct disk_file *find(const char *name)
{
    for (size_t i = 0; i < FILES_MAX; i++)
        if (disk.files[i].name && strcmp(disk.files[i].name, name) == 0)
            return &disk.files[i];
    return NULL;
}

/* Whether the fault shows at this operation, which is of the kind that it is about. */
static bool strikes(void)
{
    if (disk.shown)
        return true;
    if (disk.left > 0 && --disk.left == 0)
        disk.shown = true;
    return disk.shown;
}

static int file_close(sqlite3_file *base)
{
    (void)base;
    return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *out, int count, sqlite3_int64 at)
{
    const struct image *now = &((struct handle *)base)->file->now;
    size_t from = (size_t)at, left = from < now->size ? now->size - from : 0;
    size_t size = left < (size_t)count ? left : (size_t)count;
    if (size > 0)
        memcpy(out, now->bytes + from, size);
    memset((char *)out + size, 0, (size_t)count - size);
    return size == (size_t)count ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static void put(struct image *image, const void *bytes, size_t size, size_t at)
{
    if (at + size > image->size) {
        image_reserve(image, at + size);
        if (at > image->size)
            memset(image->bytes + image->size, 0, at - image->size);
        image->size = at + size;
    }
    memcpy(image->bytes + at, bytes, size);
}

static int file_write(sqlite3_file *base, const void *bytes, int count, sqlite3_int64 at)
{
    struct disk_file *file = ((struct handle *)base)->file;
    struct image *now = &file->now;
    size_t size = (size_t)count, from = (size_t)at;
    bool grows = from + size > now->size && from + size > file->reserved;
    if (disk.fault == DISK_WRITE_FAILS && strikes())
        return SQLITE_IOERR_WRITE;
    if (disk.fault == DISK_FULL && grows && strikes())
        return SQLITE_FULL;
    if (disk.fault == DISK_WRITE_SHORT && strikes()) {
        put(now, bytes, size / 2, from);
        return SQLITE_IOERR_WRITE;
    }
    put(now, bytes, size, from);
    if (disk.fault == DISK_DIES)
        strikes();
    return SQLITE_OK;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct image *now = &((struct handle *)base)->file->now;
    if (disk.fault == DISK_WRITE_FAILS && strikes())
        return SQLITE_IOERR_TRUNCATE;
    if ((size_t)size < now->size)
        now->size = (size_t)size;
    return SQLITE_OK;
}

static int file_sync(sqlite3_file *base, int flags)
{
    (void)flags;
    struct disk_file *file = ((struct handle *)base)->file;
    if (disk.fault == DISK_SYNC_FAILS && strikes())
        return SQLITE_IOERR_FSYNC;
    if (disk.fault == DISK_DIES && strikes())
        return SQLITE_OK; /* a lie */
    image_copy(&file->synced, &file->now);
    for (size_t i = 0; file->log && !file->kept && i < FILES_MAX; i++)
        if (&disk.files[i] != file)
            disk.files[i].kept = disk.files[i].there;
    file->kept = file->kept || file->log;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size)
{
    const struct disk_file *file = ((struct handle *)base)->file;
    *size = (sqlite3_int64)(file->reserved > file->now.size ? file->reserved : file->now.size);
    return SQLITE_OK;
}

static int file_lock(sqlite3_file *base, int lock)
{
    (void)base, (void)lock;
    return SQLITE_OK;
}

static int file_reserved(sqlite3_file *base, int *out)
{
    (void)base;
    *out = 0;
    return SQLITE_OK;
}

/* As SQLite's own files do it in chunks: for those of databases nobody asks for chunks here. */
static int file_control(sqlite3_file *base, int op, void *argument)
{
    struct disk_file *file = ((struct handle *)base)->file;
    if (op == SQLITE_FCNTL_CHUNK_SIZE)
        return SQLITE_OK;
    if (op != SQLITE_FCNTL_SIZE_HINT || !file->log)
        return SQLITE_NOTFOUND;
    size_t size = (size_t) * (sqlite3_int64 *)argument;
    if (size <= file->reserved)
        return SQLITE_OK;
    if (disk.fault == DISK_FULL && strikes())
        return SQLITE_IOERR_WRITE;
    file->reserved = size;
    return SQLITE_OK;
}

static int file_sector(sqlite3_file *base)
{
    (void)base;
    return 4096;
}

static int file_traits(sqlite3_file *base)
{
    (void)base;
    return 0;
}

static const sqlite3_io_methods methods = {
    1,         file_close, file_read,     file_write,   file_truncate, file_sync,   file_size,
    file_lock, file_lock,  file_reserved, file_control, file_sector,   file_traits,
};

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *out)
{
    (void)vfs;
    struct handle *handle = (struct handle *)base;
    struct disk_file *file = name ? find(name) : NULL;
    handle->base.pMethods = NULL;
    for (size_t i = 0; name && !file && i < FILES_MAX; i++) {
        if (!disk.files[i].name) {
            file = &disk.files[i];
            file->name = xstrdup(name);
        }
    }
    ck_assert_ptr_nonnull(file);
    if (!file->there)
        file->now.size = file->reserved = 0;
    file->there = true;
    file->log = (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0;
    handle->file = file;
    handle->base.pMethods = &methods;
    if (out)
        *out = flags;
    return SQLITE_OK;
}

static int disk_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs;
    struct disk_file *file = find(name);
    if (!file || !file->there)
        return SQLITE_IOERR_DELETE_NOENT;
    file->there = false;
    if (sync && !(disk.fault == DISK_DIES && strikes()))
        file->kept = false;
    return SQLITE_OK;
}

static int disk_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    (void)vfs, (void)flags;
    const struct disk_file *file = find(name);
    *out = file && file->there && (flags != SQLITE_ACCESS_EXISTS || file->now.size > 0);
    return SQLITE_OK;
}

void disk_install(void)
{
    static sqlite3_vfs vfs;
    if (real)
        return;
    real = sqlite3_vfs_find(NULL);
    ck_assert_ptr_nonnull(real);
    vfs = *real; /* names, time and random numbers are the real one's */
    vfs.zName = "disk";
    vfs.szOsFile = sizeof(struct handle);
    vfs.pNext = NULL;
    vfs.xOpen = disk_open;
    vfs.xDelete = disk_delete;
    vfs.xAccess = disk_access;
    ck_assert_int_eq(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
}

void disk_clear(void)
{
    for (size_t i = 0; i < FILES_MAX; i++) {
        free(disk.files[i].name);
        free(disk.files[i].now.bytes);
        free(disk.files[i].synced.bytes);
        disk.files[i] = (struct disk_file){0};
    }
    disk_plan(DISK_WELL, 0);
}

void disk_plan(enum disk_fault fault, size_t at)
{
    disk.fault = fault;
    disk.left = at;
    disk.shown = false;
}

bool disk_has_failed(void)
{
    return disk.shown;
}

void disk_lose_power(void)
{
    for (size_t i = 0; i < FILES_MAX; i++) {
        struct disk_file *file = &disk.files[i];
        image_copy(&file->now, &file->synced);
        file->there = file->kept;
        file->reserved = 0;
    }
    disk_plan(DISK_WELL, 0);
}

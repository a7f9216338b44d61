/* text.c - lists directories, and maps the texts. */
#include "worker/data/text.h"

#include "common/base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int compare_names(const struct dirent **one, const struct dirent **other)
{
    return strcmp((*one)->d_name, (*other)->d_name);
}

struct identity {
    dev_t device;
    ino_t inode;
};

/* The files that a directory has contributed, by identity and not by name. */
struct seen {
    struct identity *items;
    size_t count, capacity;
};

/* Whether a file has been seen before; from now on it has. */
static bool see(struct seen *seen, const struct stat *status)
{
    for (size_t i = 0; i < seen->count; i++)
        if (seen->items[i].device == status->st_dev && seen->items[i].inode == status->st_ino)
            return true;
    seen->items = grow(seen->items, seen->count, &seen->capacity, sizeof *seen->items);
    seen->items[seen->count++] = (struct identity){status->st_dev, status->st_ino};
    return false;
}

/* Append a file's bytes, if it has any. Takes the file. */
static void add_bytes(struct files *files, struct file file, const char *path)
{
    if (file.size)
        files_append(files, file, path, (struct elements){file.map, 1, file.size});
}

/* A file that cannot be read is an error, not a smaller corpus, because every node must see the
 * same data. A dangling link is ignored. A file with two names is read once: otherwise what is held
 * out under one name would be trained on under the other. */
static int add_member(struct files *files, struct seen *seen, const char *directory,
                      const char *name, struct error *err)
{
    char *path = xasprintf("%s/%s", directory, name);
    struct stat status;
    struct file file;
    int rc = 0;
    if (stat(path, &status) < 0) {
        if (errno != ENOENT)
            rc = error_set(err, -errno, "cannot read '%s': %s", path, strerror(errno));
    } else if (S_ISREG(status.st_mode) && !see(seen, &status)) {
        rc = file_map(path, &file, err);
        if (rc == 0 && file.size && memchr(file.map, '\0', file.size))
            file_unmap(&file);
        else if (rc == 0)
            add_bytes(files, file, path);
    }
    free(path);
    return rc;
}

static int add_directory(struct files *files, const char *path, struct error *err)
{
    struct dirent **entries;
    struct seen seen = {0};
    int count = scandir(path, &entries, NULL, compare_names);
    if (count < 0)
        return error_set(err, -errno, "cannot list '%s': %s", path, strerror(errno));
    size_t before = files->count;
    int rc = 0;
    for (int i = 0; i < count; i++) {
        if (rc == 0)
            rc = add_member(files, &seen, path, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    free(seen.items);
    if (rc == 0 && files->count == before)
        return error_set(err, -ENOENT, "there is no text file in the directory '%s'", path);
    return rc;
}

int text_open(struct files *files, const struct texts *paths, int64_t vocab, struct error *err)
{
    if (vocab < 256)
        return error_set(err, -ERANGE, "a vocabulary of %lld tokens cannot hold every byte: 256",
                         (long long)vocab);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < paths->count; i++) {
        struct file file;
        rc = file_map(paths->items[i], &file, err);
        if (rc == 0)
            add_bytes(files, file, paths->items[i]);
        else if (rc == -EISDIR)
            rc = add_directory(files, paths->items[i], err);
    }
    return rc;
}

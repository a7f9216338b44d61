/* memo.c - the file of a memo: a line with the title, then for each value a line with its bytes in
 * hexadecimal, a hash of bytes and key, and the key, separated by spaces.
 *
 * A line is appended by a single write, so that several processes may add at once. */
#include "worker/kernels/cuda/memo.h"

#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct entry {
    char key[MEMO_KEY_SIZE];
    unsigned char value[MEMO_VALUE_SIZE];
};

struct memo {
    char *path, *title;
    struct entry *entries;
    size_t count, capacity;
    bool afresh; /* the next value replaces the file, or creates it */
};

static uint64_t fingerprint(const struct entry *entry)
{
    return hash_text(hash_bytes(HASH_START, entry->value, sizeof entry->value), entry->key);
}

static struct entry *memo_append(struct memo *memo)
{
    memo->entries = grow(memo->entries, memo->count, &memo->capacity, sizeof *memo->entries);
    return &memo->entries[memo->count++];
}

static bool read_entry(const char *line, struct entry *out)
{
    unsigned byte;
    uint64_t said;
    int used;
    for (size_t i = 0; i < sizeof out->value; i++, line += 2) {
        if (sscanf(line, "%2x%n", &byte, &used) != 1 || used != 2)
            return false;
        out->value[i] = (unsigned char)byte;
    }
    if (sscanf(line, " %16" SCNx64 "%n", &said, &used) != 1 || line[used] != ' ' ||
        strlen(line + used + 1) >= sizeof out->key)
        return false;
    snprintf(out->key, sizeof out->key, "%s", line + used + 1);
    return said == fingerprint(out);
}

/* Parse the text of the file, in which newlines become NULs. */
static int read_lines(struct memo *memo, char *text, struct error *err)
{
    char *rest = text, *line = strsep(&rest, "\n");
    if (strcmp(line, memo->title) != 0)
        return error_set(err, -EINVAL, "%s is of '%.64s', and this is '%s': it is begun afresh",
                         memo->path, line, memo->title);
    for (int number = 2; rest && *rest; number++) {
        struct entry entry;
        line = strsep(&rest, "\n");
        if (!rest || !read_entry(line, &entry))
            return error_set(err, -EINVAL, "%s:%d: the line is damaged: the file is begun afresh",
                             memo->path, number);
        *memo_append(memo) = entry;
    }
    return 0;
}

int memo_open(const char *path, const char *title, struct memo **out, struct error *err)
{
    struct memo *memo = *out = xcalloc(1, sizeof *memo);
    char *text;
    memo->path = path ? xstrdup(path) : NULL;
    memo->title = xstrdup(title);
    memo->afresh = true;
    int rc = path ? file_read(path, &text, err) : -ENOENT;
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    rc = read_lines(memo, text, err);
    memo->afresh = rc < 0;
    if (rc < 0)
        memo->count = 0;
    free(text);
    return rc;
}

void memo_close(struct memo *memo)
{
    if (!memo)
        return;
    free(memo->path);
    free(memo->title);
    free(memo->entries);
    free(memo);
}

static const struct entry *memo_lookup(const struct memo *memo, const char *key)
{
    for (size_t i = 0; i < memo->count; i++)
        if (strcmp(memo->entries[i].key, key) == 0)
            return &memo->entries[i];
    return NULL;
}

bool memo_find(const struct memo *memo, const char *key, void *value)
{
    const struct entry *entry = memo_lookup(memo, key);
    if (entry)
        memcpy(value, entry->value, sizeof entry->value);
    return entry != NULL;
}

static char *memo_print(const struct entry *entry)
{
    char bytes[2 * MEMO_VALUE_SIZE + 1];
    for (size_t i = 0; i < sizeof entry->value; i++)
        snprintf(bytes + 2 * i, 3, "%02x", entry->value[i]);
    return xasprintf("%s %016" PRIx64 " %s\n", bytes, fingerprint(entry), entry->key);
}

/* Append the entry to the file, or write a new file with title and entry. */
static void keep(struct memo *memo, const struct entry *entry)
{
    char *line = memo_print(entry);
    if (memo->afresh) {
        char *text = xasprintf("%s\n%s", memo->title, line);
        memo->afresh = file_write(memo->path, text, 0644, NULL) < 0;
        free(text);
    } else {
        int fd = open(memo->path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (fd < 0 || write(fd, line, strlen(line)) < 0)
            memo->afresh = true;
        if (fd >= 0)
            close(fd);
    }
    free(line);
}

void memo_add(struct memo *memo, const char *key, const void *value)
{
    struct entry *entry;
    if (memo_lookup(memo, key))
        return;
    entry = memo_append(memo);
    snprintf(entry->key, sizeof entry->key, "%s", key);
    memcpy(entry->value, value, sizeof entry->value);
    if (memo->path)
        keep(memo, entry);
}

/* lines.c - the end of the file is read backwards, line by line, as far as it is to be cut: a file
 * may be of any size, and mostly nothing is. */
#include "worker/scalars/lines.h"

#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES 65536 /* a longer one is not ours */

struct jsonl {
    FILE *file;
    char *path;
};

/* The line that ends at `end`, with its newline: where it begins, and what it says; NULL: it is no
 * object in JSON. */
static json_t *line_before(int fd, off_t end, off_t *begin)
{
    char text[LINE_MAX_BYTES];
    size_t size = end < LINE_MAX_BYTES ? (size_t)end : LINE_MAX_BYTES;
    ssize_t got = pread(fd, text, size, end - (off_t)size);
    *begin = end - (off_t)size;
    if (got != (ssize_t)size || size == 0)
        return NULL;
    const char *newline = size > 1 ? memrchr(text, '\n', size - 1) : NULL;
    size_t from = newline ? (size_t)(newline - text) + 1 : 0;
    *begin += (off_t)from;
    return text[size - 1] == '\n' ? json_loadb(text + from, size - from, 0, NULL) : NULL;
}

/* Whether a line is of this job, and then of which step. */
static bool line_is_of(const json_t *line, const char *name, const char *job, uint64_t *step)
{
    const char *named = json_string_value(json_object_get(line, "name"));
    const char *of = json_string_value(json_object_get(line, "job"));
    *step = (uint64_t)json_integer_value(json_object_get(line, "step"));
    return named && of && strcmp(named, name) == 0 && strcmp(of, job) == 0;
}

/* Where the lines end that are to stay. Those of the step itself stay, too, but are looked at. */
static off_t jsonl_end(int fd, off_t size, const char *name, const char *job, uint64_t step,
                       bool *evaluated)
{
    off_t end = size, begin, stays = -1;
    bool goes_on = true;
    *evaluated = false;
    for (; end > 0 && goes_on; end = begin) {
        uint64_t at;
        json_t *line = line_before(fd, end, &begin);
        bool own = line_is_of(line, name, job, &at), unfinished = !line && end == size;
        bool goes = stays < 0 && (unfinished || (own && at > step));
        if (!goes && stays < 0)
            stays = end;
        *evaluated = *evaluated || (own && at == step && json_object_get(line, "held_out_loss"));
        goes_on = goes || (own && at == step);
        json_decref(line);
    }
    return stays < 0 ? 0 : stays;
}

int jsonl_open(const char *path, const char *name, const char *job, uint64_t step, bool *evaluated,
               struct jsonl **out, struct error *err)
{
    struct stat status;
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    FILE *file = NULL;
    if (fstat(fd, &status) == 0 &&
        ftruncate(fd, jsonl_end(fd, status.st_size, name, job, step, evaluated)) == 0)
        file = fdopen(fd, "a");
    if (!file) {
        int rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
        close(fd);
        return rc;
    }
    struct jsonl *lines = xcalloc(1, sizeof *lines);
    *lines = (struct jsonl){file, xstrdup(path)};
    *out = lines;
    return 0;
}

void jsonl_put(struct jsonl *lines, json_t *object)
{
    json_dumpf(object, lines->file, JSON_COMPACT | JSON_REAL_PRECISION(9));
    fputc('\n', lines->file);
    json_decref(object);
}

int jsonl_flush(struct jsonl *lines, struct error *err)
{
    if (fflush(lines->file) == 0 && !ferror(lines->file))
        return 0;
    return error_set(err, errno ? -errno : -EIO, "%s: %s", lines->path,
                     strerror(errno ? errno : EIO));
}

void jsonl_close(struct jsonl *lines)
{
    if (!lines)
        return;
    fclose(lines->file);
    free(lines->path);
    free(lines);
}

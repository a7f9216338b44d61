/* listing.c - the list is a small text file that is replaced as a whole; see listing.h. */
#include "worker/checkpoint/listing.h"

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/checkpoint/name.h"
#include "worker/checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct listing {
    char *root, *path;
    size_t keep;
    uint64_t epoch;
    char **names;
    size_t count, capacity;
    int lock;
};

static int lock(struct listing *listing, struct error *err)
{
    char *path = xasprintf("%s/lock", listing->root);
    int rc = 0;
    listing->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (listing->lock < 0)
        rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
    else if (flock(listing->lock, LOCK_EX | LOCK_NB) < 0)
        rc = errno == EWOULDBLOCK
                 ? error_set(err, -EBUSY, "another process trains with the checkpoints of '%s'",
                             listing->root)
                 : error_set(err, -errno, "lock '%s': %s", path, strerror(errno));
    free(path);
    return rc;
}

static void append(struct listing *listing, const char *name)
{
    listing->names =
        grow(listing->names, listing->count, &listing->capacity, sizeof *listing->names);
    listing->names[listing->count++] = xstrdup(name);
}

static int parse(struct listing *listing, char *text, struct error *err)
{
    char *rest = NULL;
    const char *line = strtok_r(text, "\n", &rest);
    uint64_t step, epoch;
    if (!line || sscanf(line, "epoch %" SCNu64, &listing->epoch) != 1)
        return error_set(err, -EINVAL, "%s: the first line is not 'epoch NUMBER'", listing->path);
    while ((line = strtok_r(NULL, "\n", &rest))) {
        if (!checkpoint_name_parse(line, &step, &epoch) || epoch > listing->epoch)
            return error_set(err, -EINVAL, "%s: '%.80s' is no checkpoint of epoch %" PRIu64,
                             listing->path, line, listing->epoch);
        append(listing, line);
    }
    return 0;
}

static int read_list(struct listing *listing, struct error *err)
{
    char *text;
    if (access(listing->path, F_OK) < 0 && errno == ENOENT)
        return 0;
    int rc = file_read(listing->path, &text, err);
    if (rc < 0)
        return rc;
    rc = parse(listing, text, err);
    free(text);
    return rc;
}

static int write_list(const struct listing *listing, struct error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "epoch %" PRIu64 "\n", listing->epoch);
    for (size_t i = 0; i < listing->count; i++)
        fprintf(out, "%s\n", listing->names[i]);
    fclose(out);
    int rc = file_write(listing->path, text, 0666, err);
    free(text);
    return rc;
}

int listing_open(const char *root, size_t keep, struct listing **out, struct error *err)
{
    struct listing *listing = xcalloc(1, sizeof *listing);
    *listing = (struct listing){
        .root = xstrdup(root), .path = xasprintf("%s/listed", root), .keep = keep, .lock = -1};
    int rc = folder_make_mode(root, 0777, err);
    if (rc == 0)
        rc = lock(listing, err);
    if (rc == 0)
        rc = read_list(listing, err);
    listing->epoch++;
    if (rc == 0)
        rc = write_list(listing, err);
    if (rc < 0) {
        listing_close(listing);
        return rc;
    }
    *out = listing;
    return 0;
}

void listing_close(struct listing *listing)
{
    if (!listing)
        return;
    for (size_t i = 0; i < listing->count; i++)
        free(listing->names[i]);
    free(listing->names);
    if (listing->lock >= 0)
        close(listing->lock);
    free(listing->path);
    free(listing->root);
    free(listing);
}

uint64_t listing_epoch(const struct listing *listing)
{
    return listing->epoch;
}

const char *const *listing_names(const struct listing *listing, size_t *count)
{
    *count = listing->count;
    return (const char *const *)listing->names;
}

int listing_add(struct listing *listing, const char *name, struct error *err)
{
    append(listing, name);
    char *newest = listing->names[listing->count - 1];
    memmove(listing->names + 1, listing->names, (listing->count - 1) * sizeof *listing->names);
    listing->names[0] = newest;
    while (listing->count > listing->keep)
        free(listing->names[--listing->count]);
    return write_list(listing, err);
}

int listing_newest(const struct listing *listing, char **folder, uint64_t *step, struct error *err)
{
    uint64_t epoch;
    *folder = NULL;
    for (size_t i = 0; i < listing->count; i++) {
        char *path = xasprintf("%s/%s", listing->root, listing->names[i]);
        if (checkpoint_verify(path, NULL, err) == 0) {
            checkpoint_name_parse(listing->names[i], step, &epoch);
            *folder = path;
            return 0;
        }
        log_line(LOG_WARN, "training cannot continue from the checkpoint '%s': %s", path,
                 err->text);
        free(path);
    }
    return listing->count == 0 ? 0
                               : error_prefix(err, -EBADMSG,
                                              "no undamaged checkpoint is left in '%s'; of the "
                                              "oldest",
                                              listing->root);
}

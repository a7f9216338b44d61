/* state_folder.c - flock on a file, and three numbers in another. */
#include "worker/node/state_folder.h"

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define FENCE_FORMAT "cluster %016" PRIx64 "\nterm %" PRIu64 "\ninstance %016" PRIx64 "\n"

static int lock_file(int fd, const char *state, const char *node, struct error *err)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno == EWOULDBLOCK)
        return error_set(err, -EBUSY,
                         "another gimbal-worker named '%s' keeps its state in '%s': give this one "
                         "another --name, and a --state of its own",
                         node, state);
    log_line(LOG_WARN, "'%s' cannot be locked (%s): see that no other worker keeps its state there",
             state, strerror(errno));
    return 0;
}

int state_folder_lock(const char *state, const char *node, int *out, struct error *err)
{
    char *path = xasprintf("%s/%s.lock", state, node);
    int rc = folder_make(state, err), fd = -1;
    if (rc == 0 && (fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0)
        rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
    if (rc == 0)
        rc = lock_file(fd, state, node, err);
    free(path);
    if (rc < 0) {
        state_folder_unlock(fd);
        return rc;
    }
    *out = fd;
    return 0;
}

void state_folder_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

char *fence_path(const char *state, const char *node)
{
    return xasprintf("%s/%s.coordinator", state, node);
}

int fence_read(const char *path, struct rpc_fence *out, struct error *err)
{
    char *text, rest;
    *out = (struct rpc_fence){0};
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    int rc = file_read(path, &text, err);
    if (rc < 0)
        return rc;
    if (sscanf(text, "cluster %" SCNx64 " term %" SCNu64 " instance %" SCNx64 " %c", &out->cluster,
               &out->term, &out->instance, &rest) != 3)
        rc = error_set(err, -EPROTO,
                       "'%s' does not say which coordinator this node belongs to; remove it to let "
                       "the node join anew",
                       path);
    free(text);
    return rc;
}

int fence_write(const char *path, const struct rpc_fence *fence, struct error *err)
{
    char *text = xasprintf(FENCE_FORMAT, fence->cluster, fence->term, fence->instance);
    int rc = file_write(path, text, 0600, err);
    free(text);
    return rc;
}

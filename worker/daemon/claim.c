/* claim.c - flock on a file in the state folder. */
#include "worker/daemon/claim.h"

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int take(int fd, const char *state, const char *node, struct error *err)
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

int claim_open(const char *state, const char *node, int *out, struct error *err)
{
    char *path = xasprintf("%s/%s.lock", state, node);
    int rc = folder_make(state, err), fd = -1;
    if (rc == 0 && (fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0)
        rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
    if (rc == 0)
        rc = take(fd, state, node, err);
    free(path);
    if (rc < 0) {
        claim_close(fd);
        return rc;
    }
    *out = fd;
    return 0;
}

void claim_close(int claim)
{
    if (claim >= 0)
        close(claim);
}

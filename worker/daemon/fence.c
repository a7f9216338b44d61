/* fence.c - three numbers in a text file. */
#include "worker/daemon/fence.h"

#include "common/base/file.h"
#include "common/base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FORMAT "cluster %016" PRIx64 "\nterm %" PRIu64 "\ninstance %016" PRIx64 "\n"

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
    char *text = xasprintf(FORMAT, fence->cluster, fence->term, fence->instance);
    int rc = file_write(path, text, 0600, err);
    free(text);
    return rc;
}

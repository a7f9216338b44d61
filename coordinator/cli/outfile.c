/* outfile.c - writes to a file next to the final one, then renames it. */
#include "coordinator/cli/outfile.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int outfile_begin(const char *path, struct outfile *outfile, struct error *err)
{
    *outfile = (struct outfile){.path = path};
    if (!path)
        return 0;
    /* two commands may write it at once */
    outfile->part = xasprintf("%s.%ld.part", path, (long)getpid());
    fflush(stdout);
    if (freopen(outfile->part, "we", stdout))
        return 0;
    int rc = error_set(err, -errno, "cannot write '%s': %s", path, strerror(errno));
    free(outfile->part);
    return rc;
}

int outfile_end(struct outfile *outfile, bool done, struct error *err)
{
    if (!outfile->path)
        return 0;
    int rc = fflush(stdout) < 0 ? -errno : ferror(stdout) ? -EIO : 0;
    bool keep = done || ftello(stdout) > 0;
    if (rc == 0 && keep && rename(outfile->part, outfile->path) < 0)
        rc = -errno;
    if (rc < 0 && keep)
        error_set(err, rc, "cannot write '%s': %s", outfile->path, strerror(-rc));
    if (!keep || rc < 0)
        unlink(outfile->part);
    free(outfile->part);
    return keep ? rc : 0;
}

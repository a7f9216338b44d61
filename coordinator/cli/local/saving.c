/* saving.c - makes the folder that an executor would make, because of an executor's failure only
 * the words are known, and not that it is the fault of a name or of somebody's rights. */
#include "coordinator/cli/local/saving.h"

#include "common/base/file.h"
#include "common/checkpoint/name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_missing(const char *path)
{
    struct stat status;
    return stat(path, &status) < 0 && errno == ENOENT;
}

int saving_prepare(const char *dir, const char *job, bool resume, struct error *err)
{
    char *root = checkpoint_root_local(dir, job);
    int rc = 0;
    if (!resume || !is_missing(root)) {
        rc = folder_make_mode(root, 0777, err);
        if (rc == 0 && faccessat(AT_FDCWD, root, W_OK | X_OK, AT_EACCESS) < 0)
            rc = error_set(err, -errno, "files in '%s' cannot be written: %s", root,
                           strerror(errno));
    }
    free(root);
    return rc;
}

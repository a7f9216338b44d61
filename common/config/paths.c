/* paths.c - see paths.h. ".." stays: behind a symbolic link it leads elsewhere than the text says.
 */
#include "common/config/paths.h"

#include "common/base/memory.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Remove doubled and final slashes, and components that are ".". */
static void path_tidy(char *path)
{
    char *to = path;
    for (const char *from = path; *from;) {
        size_t length = strcspn(from + 1, "/");
        bool empty = length == 0 || (length == 1 && from[1] == '.');
        if (!empty) {
            memmove(to, from, length + 1);
            to += length + 1;
        }
        from += length + 1;
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

int path_resolve(const char *key, const char *path, enum path_place place, char **out,
                 struct error *err)
{
    bool absolute = path[0] == '/';
    if (!path[0])
        return error_set(err, -EINVAL, "%s is empty: write a path", key);
    if (!absolute && place == PATH_NODES)
        return error_set(err, -EINVAL,
                         "%s '%s' must begin with '/': the nodes have no folder in common that it "
                         "could count from",
                         key, path);
    char *here = absolute ? NULL : getcwd(NULL, 0);
    if (!absolute && !here)
        return error_set(err, -errno, "%s '%s': the working directory: %s", key, path,
                         strerror(errno));
    char *whole = absolute ? xstrdup(path) : xasprintf("%s/%s", here, path);
    free(here);
    path_tidy(whole);
    int rc = 0;
    if (strlen(whole) >= PATH_MAX)
        rc = error_set(err, -EINVAL, "%s '%.80s...' is longer than a path can be, %d bytes", key,
                       path, PATH_MAX - 1);
    if (rc < 0 || !out)
        free(whole);
    else
        *out = whole;
    return rc;
}

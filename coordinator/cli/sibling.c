/* sibling.c - finds a program by the environment, or in the directory of our own binary. */
#include "coordinator/cli/sibling.h"

#include "common/base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int own_folder(char *out, size_t size, struct error *err)
{
    ssize_t length = readlink("/proc/self/exe", out, size - 1);
    if (length < 0)
        return error_set(err, -errno, "read /proc/self/exe: %s", strerror(errno));
    out[length] = '\0';
    *strrchr(out, '/') = '\0';
    return 0;
}

/* "gimbal-executor" -> "GIMBAL_EXECUTOR" */
static const char *environment(const char *name, char *out, size_t size)
{
    size_t i = 0;
    for (; name[i] && i + 1 < size; i++)
        out[i] = name[i] == '-' ? '_' : (char)toupper((unsigned char)name[i]);
    out[i] = '\0';
    return getenv(out);
}

int sibling_path(const char *name, char **out, struct error *err)
{
    char folder[PATH_MAX], variable[64];
    const char *given = environment(name, variable, sizeof variable);
    if (given && *given) {
        if (access(given, X_OK) < 0)
            return error_set(err, -errno, "%s=%s: %s", variable, given, strerror(errno));
        *out = xstrdup(given);
        return 0;
    }
    int rc = own_folder(folder, sizeof folder, err);
    if (rc < 0)
        return rc;
    char *path = xasprintf("%s/%s", folder, name);
    if (access(path, X_OK) < 0) {
        free(path);
        return error_set(err, -ENOENT,
                         "there is no program '%s' in %s; install it there, or name it by %s", name,
                         folder, variable);
    }
    *out = path;
    return 0;
}

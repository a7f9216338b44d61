/* state.c - finds the folders that systemd and the XDG Base Directory Specification prescribe. */
#include "common/config/folders.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

char *state_folder(const char *name)
{
    const char *given = variable("STATE_DIRECTORY"), *base = variable("XDG_STATE_HOME"),
               *home = variable("HOME");
    if (given) /* may be several, separated by colons */
        return xasprintf("%.*s", (int)strcspn(given, ":"), given);
    if (geteuid() == 0)
        return xasprintf("/var/lib/gimbal/%s", name);
    if (base)
        return xasprintf("%s/gimbal/%s", base, name);
    return home ? xasprintf("%s/.local/state/gimbal/%s", home, name) : NULL;
}

char *cache_folder(void)
{
    const char *base = variable("XDG_CACHE_HOME"), *home = variable("HOME");
    if (base && base[0] == '/') /* XDG: relative paths must be ignored */
        return xasprintf("%s/gimbal", base);
    return home ? xasprintf("%s/.cache/gimbal", home) : NULL;
}

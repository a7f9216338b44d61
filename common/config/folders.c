/* folders.c - finds the folders that systemd and the XDG Base Directory Specification prescribe,
 * and prints and parses the names of checkpoint folders. */
#include "common/config/folders.h"

#include "common/base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *folder_variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

char *state_folder(const char *name)
{
    const char *given = folder_variable("STATE_DIRECTORY"),
               *base = folder_variable("XDG_STATE_HOME"), *home = folder_variable("HOME");
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
    const char *base = folder_variable("XDG_CACHE_HOME"), *home = folder_variable("HOME");
    if (base && base[0] == '/') /* XDG: relative paths must be ignored */
        return xasprintf("%s/gimbal", base);
    return home ? xasprintf("%s/.cache/gimbal", home) : NULL;
}

char *checkpoint_name(uint64_t step, uint64_t epoch)
{
    return xasprintf("step-%" PRIu64 ".epoch-%" PRIu64, step, epoch);
}

/* Accepts only what checkpoint_name() would print: no signs, blanks or leading zeros. */
bool checkpoint_name_parse(const char *name, uint64_t *step, uint64_t *epoch)
{
    if (sscanf(name, "step-%" SCNu64 ".epoch-%" SCNu64, step, epoch) != 2)
        return false;
    char *same = checkpoint_name(*step, *epoch);
    bool is_name = strcmp(same, name) == 0;
    free(same);
    return is_name;
}

char *checkpoint_root(const char *dir, const char *job, uint64_t cluster)
{
    return xasprintf("%s/%s-%08" PRIx32, dir, job, (uint32_t)cluster);
}

char *checkpoint_root_local(const char *dir, const char *name)
{
    return xasprintf("%s/%s-local", dir, name);
}

char *node_mark_path(const char *root, const char *node)
{
    return xasprintf("%s/.nodes/%s", root, node);
}

/* name.c - prints and parses the names of checkpoint folders. */
#include "common/config/folders.h"

#include "common/base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

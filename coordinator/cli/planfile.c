/* planfile.c - read, decode. */
#include "coordinator/cli/planfile.h"

#include "common/base/file.h"

#include <stdlib.h>

int planfile_load(const char *path, struct plan **out, struct error *err)
{
    char *text;
    int rc = file_read(path, &text, err);
    if (rc < 0)
        return rc;
    rc = plan_decode(text, out, err);
    free(text);
    return rc < 0 ? error_prefix(err, rc, "plan '%s'", path) : 0;
}

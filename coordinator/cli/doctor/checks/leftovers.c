/* leftovers.c - executors whose worker is gone. The kernel kills them along with it; one that
 * remains hangs in a driver or on a disk, and still occupies its cores and memory. */
#include "coordinator/cli/doctor/visit.h"

#include "coordinator/cli/leftovers.h"

#include <stdlib.h>
#include <string.h>

static void look(void *scene, struct findings *out)
{
    (void)scene;
    char *left = leftovers_orphans(), *rest = NULL;
    if (!left)
        finding_ok(out, "no executor has outlived its worker");
    for (char *line = left ? strtok_r(left, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        finding_warn(out,
                     "'kill -9' it; if that does not help, it hangs in a driver: see dmesg, and "
                     "restart the machine",
                     "%s has no worker any more, but still holds its cores and memory", line);
    free(left);
}

const struct doctor_check visit_leftovers = {
    .name = "leftovers",
    .about = "executors that outlived their worker",
    .cb = look,
};

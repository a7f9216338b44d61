/* planfile.h - a plan as `gimbal plan -o json` wrote it, from a file. */
#ifndef COORDINATOR_CLI_PLANFILE_H
#define COORDINATOR_CLI_PLANFILE_H

#include "common/base/error.h"
#include "common/plan/plan.h"

/* -errno when it cannot be read, -EINVAL when it is no plan; the path is in the sentence. The plan
 * is the caller's. */
int planfile_load(const char *path, struct plan **out, struct error *err);

#endif

/* sibling.h - finds the other programs of this installation. */
#ifndef COORDINATOR_CLI_SIBLING_H
#define COORDINATOR_CLI_SIBLING_H

#include "common/base/error.h"

/* The path of a program: as named by the environment (gimbal-executor: GIMBAL_EXECUTOR), else next
 * to our own binary. The caller frees *out. -ENOENT tells where it was looked for. */
int sibling_path(const char *name, char **out, struct error *err);

#endif

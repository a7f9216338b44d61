/* sibling.h - where the other programs of this installation are. */
#ifndef COORDINATOR_CLI_SIBLING_H
#define COORDINATOR_CLI_SIBLING_H

#include "common/base/error.h"

/* The program called name: the file that the environment names (gimbal-executor:
 * GIMBAL_EXECUTOR), else the one beside our own binary. *out is the caller's. -ENOENT says where it
 * was looked for. */
int sibling_path(const char *name, char **out, struct error *err);

#endif

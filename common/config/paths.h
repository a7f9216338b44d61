/* paths.h - the one place that every file and folder passes which a job names: in its job file, by
 * a flag that goes with it, or as the folder that a cluster saves it in. Whoever opens what a job
 * named opens what this has returned.
 *
 * Processes of a job run on many nodes, which have no working directory in common, so what is for
 * them begins with '/'. */
#ifndef COMMON_CONFIG_PATHS_H
#define COMMON_CONFIG_PATHS_H

#include "common/base/error.h"

/* Where it will be opened. */
enum path_place {
    PATH_HERE,  /* by this process, or a child: a relative path counts from the working directory */
    PATH_NODES, /* on every node of the job */
};

/* Resolve a path that the job names by `key`. *out is absolute, without doubled or final slashes
 * and without "." on its way, and the caller's to free; out may be NULL. -EINVAL with the key and
 * the path: it is empty, too long, or of no meaning on the nodes. */
int path_resolve(const char *key, const char *path, enum path_place place, char **out,
                 struct error *err);

#endif

/* folder.h - the one JSON file of a folder whose name begins with some words, where what follows in
 * it is of no interest. */
#ifndef COMMON_PROFILE_FOLDER_H
#define COMMON_PROFILE_FOLDER_H

#include "common/base/error.h"

#include <jansson.h>

/* *path is its name, and *out the object in it; both are the caller's, also after a failure, which
 * leaves untouched what it did not come to. -ENOENT: there is none; -EINVAL: there are two, or it
 * is no JSON object. */
int folder_read_json(const char *folder, const char *prefix, char **path, json_t **out,
                     struct error *err);

#endif

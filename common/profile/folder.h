/* folder.h - finds and reads the JSON file in a folder whose name begins with a prefix, whatever
 * the rest of its name is. */
#ifndef COMMON_PROFILE_FOLDER_H
#define COMMON_PROFILE_FOLDER_H

#include "common/base/error.h"

#include <jansson.h>

/* *path becomes the path of the file and *out its object. The caller frees both, even after a
 * failure, which leaves what it did not get to unchanged. -ENOENT when there is no such file;
 * -EINVAL when there are two, or it is not a JSON object. */
int folder_read_json(const char *folder, const char *prefix, char **path, json_t **out,
                     struct error *err);

#endif

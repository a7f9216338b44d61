/* folder.c - looks for a JSON file by its prefix, and insists that there is exactly one. */
#include "common/profile/folder.h"

#include "common/base/file.h"
#include "common/base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Find the one file PREFIX*.json in a folder. *out becomes its path, owned by the caller. */
static int find_file(const char *folder, const char *prefix, char **out, struct error *err)
{
    DIR *directory = opendir(folder);
    char *found = NULL;
    int rc = 0;
    if (!directory)
        return error_set(err, -errno, "folder '%s': %s", folder, strerror(errno));
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        size_t size = strlen(entry->d_name);
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 || size < 5 ||
            strcmp(entry->d_name + size - 5, ".json") != 0)
            continue;
        if (found)
            rc = error_set(err, -EINVAL, "folder '%s' has two files %s*.json: leave one", folder,
                           prefix);
        free(found);
        found = xasprintf("%s/%s", folder, entry->d_name);
    }
    closedir(directory);
    if (rc == 0 && !found)
        rc = error_set(err, -ENOENT, "folder '%s' has no file %s*.json", folder, prefix);
    if (rc < 0)
        free(found);
    else
        *out = found;
    return rc;
}

int folder_read_json(const char *folder, const char *prefix, char **path, json_t **out,
                     struct error *err)
{
    char *text;
    json_error_t where;
    int rc = find_file(folder, prefix, path, err);
    if (rc < 0)
        return rc;
    rc = file_read(*path, &text, err);
    if (rc == 0) {
        *out = json_loads(text, JSON_REJECT_DUPLICATES, &where);
        free(text);
        if (!json_is_object(*out))
            rc = *out ? error_set(err, -EINVAL, "'%s' is no JSON object", *path)
                      : error_set(err, -EINVAL, "'%s' is no JSON object: line %d: %s", *path,
                                  where.line, where.text);
    }
    return rc;
}

/* files.c - jansson, with words for people. */
#include "coordinator/planner/galvatron/files.h"

#include "common/base/file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int files_read(const char *path, json_t **out, struct error *err)
{
    char *text;
    json_error_t where;
    int rc = file_read(path, &text, err);
    if (rc < 0)
        return rc;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    free(text);
    if (json_is_object(root)) {
        *out = root;
        return 0;
    }
    rc = root ? error_set(err, -EINVAL, "'%s' is no JSON object", path)
              : error_set(err, -EINVAL, "'%s' is no JSON object: line %d: %s", path, where.line,
                          where.text);
    json_decref(root);
    return rc;
}

int files_number(const char *path, const char *key, const json_t *value, bool above, double *out,
                 struct error *err)
{
    if (!json_is_number(value))
        return error_set(err, -EINVAL, "'%s': %s is %s: write a number %s 0", path, key,
                         value ? "no number" : "missing", above ? "above" : "of at least");
    double number = json_number_value(value);
    if (!isfinite(number) || number < 0 || (above && number == 0))
        return error_set(err, -EINVAL, "'%s': %s is %g, and has to be %s 0", path, key, number,
                         above ? "above" : "at least");
    *out = number;
    return 0;
}

int files_whole(const char *path, const char *key, const json_t *value, int64_t least, int64_t *out,
                struct error *err)
{
    double number = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
    if (!json_is_boolean(value) && !json_is_number(value))
        return error_set(err, -EINVAL, "'%s': %s is %s: write a whole number from %lld on", path,
                         key, value ? "no number" : "missing", (long long)least);
    if (!(number >= (double)least && number <= 0x1p40 && number == floor(number)))
        return error_set(err, -EINVAL, "'%s': %s is %g: write a whole number from %lld on", path,
                         key, number, (long long)least);
    *out = (int64_t)number;
    return 0;
}

int files_word(const char *path, const char *key, const json_t *value, const char *const *words,
               int *out, struct error *err)
{
    const char *text = json_string_value(value);
    char list[128] = "";
    for (int i = 0; words[i]; i++) {
        if (text && strcmp(text, words[i]) == 0) {
            *out = i;
            return 0;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", words[i]);
    }
    return error_set(err, -EINVAL, "'%s': %s is %s%s%s: write one of %s", path, key,
                     text ? "'" : "", text ? text : "no text", text ? "'" : "", list);
}

/* profile.c - a table says which files there are, and a function reads the keys of each. */
#include "coordinator/planner/galvatron/profile.h"

#include "common/base/file.h"
#include "common/base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Find the one file PREFIX*.json in a folder. *out becomes its path, owned by the caller. */
static int find_json(const char *folder, const char *prefix, char **out, struct error *err)
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

/* Reads the JSON file in a folder whose name begins with a prefix, whatever the rest of its name
 * is. *path becomes the path of the file and *out its object. The caller frees both, even after a
 * failure, which leaves what it did not get to unchanged. -ENOENT when there is no such file;
 * -EINVAL when there are two, or it is not a JSON object. */
static int read_json(const char *folder, const char *prefix, char **path, json_t **out,
                     struct error *err)
{
    char *text;
    json_error_t where;
    int rc = find_json(folder, prefix, path, err);
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

int galvatron_level(int64_t number)
{
    for (int i = 0; i < GALVATRON_LEVELS; i++)
        if (number == (int64_t)1 << i)
            return i;
    return -1;
}

double galvatron_ms(const struct galvatron_times *times, double batch)
{
    size_t found = 0;
    for (size_t i = 1; i < times->count && times->items[i].batch <= batch; i++)
        found = i;
    return times->items[found].ms;
}

/* Read a number, which must be above zero. */
static int take_number(const char *path, const char *key, const json_t *value, double *out,
                       struct error *err)
{
    if (!json_is_number(value))
        return error_set(err, -EINVAL, "'%s': %s is %s", path, key,
                         value ? "no number" : "missing");
    *out = json_number_value(value);
    if (!(*out > 0 && isfinite(*out)))
        return error_set(err, -EINVAL, "'%s': %s is %g, and has to be above 0", path, key, *out);
    return 0;
}

static int by_batch(const void *first, const void *second)
{
    return ((const struct galvatron_time *)first)->batch -
           ((const struct galvatron_time *)second)->batch;
}

/* Parse what follows the name in a key: "_bsz8_seq512", "_bsz8" or nothing. Missing is 0. */
static bool parse_shape(const char *text, int *batch, int64_t *seq)
{
    int used = 0;
    long long length = 0;
    *batch = 0;
    *seq = 0;
    if (!*text)
        return true;
    if (sscanf(text, "_bsz%d%n", batch, &used) != 1 || *batch <= 0)
        return false;
    text += used;
    if (!*text)
        return true;
    used = 0;
    bool ok = sscanf(text, "_seq%lld%n", &length, &used) == 1 && length > 0 && !text[used];
    *seq = length;
    return ok;
}

static int take_times(const char *path, json_t *root, const char *const *names, int64_t seq,
                      struct galvatron_times *out, struct error *err)
{
    const char *key;
    json_t *value;
    for (int i = 0; names[i] && out->count == 0; i++) {
        json_object_foreach(root, key, value)
        {
            struct galvatron_time *time = &out->items[out->count];
            int64_t length;
            size_t size = strlen(names[i]);
            if (strncmp(key, names[i], size) != 0 ||
                !parse_shape(key + size, &time->batch, &length) || (length && length != seq))
                continue;
            int rc = take_number(path, key, value, &time->ms, err);
            if (rc < 0)
                return rc;
            if (++out->count == GALVATRON_TIMES_MAX)
                return error_set(err, -EINVAL, "'%s' has %d times of %s or more", path,
                                 GALVATRON_TIMES_MAX, names[i]);
        }
    }
    if (out->count == 0)
        return error_set(err, -EINVAL,
                         "'%s' has no %s_bszB_seq%lld, nor one without a length: it was not "
                         "measured with sequences of %lld",
                         path, names[0], (long long)seq, (long long)seq);
    qsort(out->items, out->count, sizeof *out->items, by_batch);
    return 0;
}

/* The level of a key that is a degree, "4"; -1 when it is none. */
static int level_of(const char *key)
{
    char *end;
    long long degree = strtoll(key, &end, 10);
    return *end ? -1 : galvatron_level(degree);
}

/* Read an object {"1": MB, "2": MB, ...}; other keys are ignored. */
static int take_levels(const char *path, const char *name, const json_t *object, double *out,
                       struct error *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return error_set(err, -EINVAL, "'%s': %s is missing, or no object by degree", path, name);
    json_object_foreach((json_t *)object, key, value)
    {
        int level = level_of(key);
        int rc = level < 0 ? 0 : take_number(path, name, value, &out[level], err);
        if (rc < 0)
            return error_prefix(err, rc, "degree %s", key);
    }
    return 0;
}

/* Find the object NAMESUFFIX. If it has no member `has`, it is divided by sequence length; then
 * find its part for `seq`. */
static int find_part(const char *path, const json_t *root, const char *name, const char *suffix,
                     const char *has, int64_t seq, const json_t **out, struct error *err)
{
    char key[64], length[32];
    snprintf(key, sizeof key, "%s%s", name, suffix);
    snprintf(length, sizeof length, "%lld", (long long)seq);
    const json_t *part = json_object_get(root, key);
    if (!json_is_object(part))
        return error_set(err, -EINVAL, "'%s': %s is missing", path, key);
    if (!json_object_get(part, has)) {
        part = json_object_get(part, length);
        if (!json_is_object(part))
            return error_set(err, -EINVAL,
                             "'%s': %s has neither %s nor %s: it was not measured with sequences "
                             "of %s",
                             path, key, has, length, length);
    }
    *out = part;
    return 0;
}

static int take_other(const char *path, const json_t *root, const char *name, const char *suffix,
                      int64_t seq, struct galvatron_other *out, struct error *err)
{
    const json_t *part;
    int rc = find_part(path, root, name, suffix, "model_states", seq, &part, err);
    if (rc == 0)
        rc = take_levels(path, "model_states", json_object_get(part, "model_states"),
                         out->states_mb, err);
    if (rc == 0)
        rc = take_levels(path, "activation", json_object_get(part, "activation"),
                         out->activation_mb, err);
    return rc < 0 ? error_prefix(err, rc, "%s", name) : 0;
}

static int take_memory(const char *path, json_t *root, int64_t seq, struct galvatron_profile *out,
                       struct error *err)
{
    const json_t *layer;
    out->sequence = json_object_get(root, "layertype_0_sp");
    const char *suffix = out->sequence ? "_sp" : "";
    int rc = find_part(path, root, "layertype_0", suffix, "parameter_size", seq, &layer, err);
    if (rc == 0)
        rc = take_number(path, "parameter_size", json_object_get(layer, "parameter_size"),
                         &out->parameter_mb, err);
    const char *name = "tp_activation_per_bsz_dict";
    const json_t *activation = rc == 0 ? json_object_get(layer, name) : NULL;
    if (rc == 0)
        rc = take_levels(path, name, activation, out->activation_mb, err);
    if (rc == 0 && json_object_get(activation, "checkpoint"))
        rc = take_number(path, "checkpoint", json_object_get(activation, "checkpoint"),
                         &out->checkpoint_mb, err);
    if (rc == 0)
        rc = take_other(path, root, "other_memory_pp_off", suffix, seq, &out->alone, err);
    if (rc == 0)
        rc = take_other(path, root, "other_memory_pp_on_first", suffix, seq, &out->first, err);
    if (rc == 0)
        rc = take_other(path, root, "other_memory_pp_on_last", suffix, seq, &out->last, err);
    return rc;
}

static int take_allreduce(const char *path, json_t *root, int64_t seq,
                          struct galvatron_profile *out, struct error *err)
{
    (void)seq; /* machines know nothing of it */
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        int size, neighbours;
        if (sscanf(key, "allreduce_size_%d_consec_%d", &size, &neighbours) != 2 ||
            galvatron_level(size) < 0 || neighbours < 0 || neighbours > 1)
            continue;
        int rc = take_number(path, key, value,
                             &out->allreduce_gb_s[neighbours][galvatron_level(size)], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int take_p2p(const char *path, json_t *root, int64_t seq, struct galvatron_profile *out,
                    struct error *err)
{
    (void)seq; /* machines know nothing of it */
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        int size;
        if (sscanf(key, "pp_size_%d", &size) != 1 || galvatron_level(size) < 0)
            continue;
        int rc = take_number(path, key, value, &out->p2p_gb_s[galvatron_level(size)], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int take_computation(const char *path, json_t *root, int64_t seq,
                            struct galvatron_profile *out, struct error *err)
{
    static const char *const layer[] = {"layertype_0", NULL};
    static const char *const other[] = {"layertype_other_0", "layertype_other", NULL};
    const char *name = strrchr(path, '/');
    out->mixed = strstr(name, "_bf16") || strstr(name, "_fp16");
    int rc = take_times(path, root, layer, seq, &out->layer, err);
    return rc == 0 ? take_times(path, root, other, seq, &out->other, err) : rc;
}

static int take_overlap(const char *path, json_t *root, int64_t seq, struct galvatron_profile *out,
                        struct error *err)
{
    (void)seq; /* overlap does not depend on it */
    return take_number(path, "overlap_coe", json_object_get(root, "overlap_coe"), &out->overlap,
                       err);
}

static const struct {
    const char *prefix;
    bool of_model; /* else of machines */
    int (*take)(const char *path, json_t *root, int64_t seq, struct galvatron_profile *out,
                struct error *err);
} files[] = {
    {"computation_profiling_", true, take_computation}, {"memory_profiling_", true, take_memory},
    {"allreduce_bandwidth_", false, take_allreduce},    {"p2p_bandwidth_", false, take_p2p},
    {"overlap_coefficient", false, take_overlap},
};

int galvatron_load(const char *model_folder, const char *machine_folder, int64_t seq,
                   struct galvatron_profile *out, struct error *err)
{
    struct galvatron_profile profile = {.mixed = false};
    int rc = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files && rc == 0; i++) {
        char *path = NULL;
        json_t *root = NULL;
        rc = read_json(files[i].of_model ? model_folder : machine_folder, files[i].prefix, &path,
                       &root, err);
        if (rc == 0)
            rc = files[i].take(path, root, seq, &profile, err);
        json_decref(root);
        free(path);
    }
    if (rc == 0)
        *out = profile;
    return rc;
}

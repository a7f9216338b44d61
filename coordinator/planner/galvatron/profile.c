/* profile.c - which files there are, and what is in each of them. */
#include "coordinator/planner/galvatron/profile.h"

#include "coordinator/planner/galvatron/files.h"

#include "common/base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool galvatron_find(const struct galvatron_table *table, int key, double *out)
{
    for (int i = 0; i < table->count; i++) {
        if (table->keys[i] == key) {
            *out = table->values[i];
            return true;
        }
    }
    return false;
}

bool galvatron_put(struct galvatron_table *table, int key, double value)
{
    int i = 0;
    while (i < table->count && table->keys[i] != key)
        i++;
    if (i == GALVATRON_TABLE_MAX)
        return false;
    table->keys[i] = key;
    table->values[i] = value;
    table->count += i == table->count;
    return true;
}

double galvatron_at(const struct galvatron_line *line, double x)
{
    return line->slope * x + line->fixed;
}

/* A polynomial of `degree` (1 or 2) through the points, by least squares, lowest power first. The
 * points are scaled to at most 1, and the normal equations solved in long double. */
static void fit(const double *x, const double *y, size_t count, int degree, double *out)
{
    long double sums[3][4] = {{0}}, scale = 0;
    int n = degree + 1;
    for (size_t i = 0; i < count; i++)
        scale = fmaxl(scale, fabsl((long double)x[i]));
    for (size_t i = 0; i < count; i++) {
        long double power[3] = {1, x[i] / scale, x[i] / scale * (x[i] / scale)};
        for (int r = 0; r < n; r++) {
            for (int c = 0; c < n; c++)
                sums[r][c] += power[r] * power[c];
            sums[r][3] += power[r] * y[i];
        }
    }
    for (int p = 0; p < n; p++)
        for (int r = 0; r < n; r++) {
            long double times = r == p ? 0 : sums[r][p] / sums[p][p];
            for (int c = 0; c < 4; c++)
                sums[r][c] -= times * sums[p][c];
        }
    for (int p = 0; p < n; p++)
        out[p] = (double)(sums[p][3] / sums[p][p] / powl(scale, p));
}

static size_t count_distinct(const double *x, size_t count)
{
    size_t distinct = 0;
    for (size_t i = 0; i < count; i++) {
        size_t j = 0;
        while (x[j] != x[i])
            j++;
        distinct += j == i;
    }
    return distinct;
}

/* The one file PREFIX*.json in a folder. *out becomes its path, owned by the caller. */
static int find_model_file(const char *folder, const char *prefix, char **out, struct error *err)
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

/* The file of the machines' shape, or the one for all of them. */
static int find_machine_file(const char *folder, const char *name, bool of_shape,
                             const struct galvatron_spec *spec, char **out, struct error *err)
{
    char shape[64] = "";
    if (of_shape)
        snprintf(shape, sizeof shape, "_%dnodes_%dgpus_per_node", spec->nodes, spec->gpus_per_node);
    *out = xasprintf("%s/%s%s.json", folder, name, shape);
    if (access(*out, F_OK) == 0)
        return 0;
    return error_set(err, -ENOENT, "folder '%s' has no file %s%s.json%s", folder, name, shape,
                     of_shape ? ": profile machines of that shape, or plan for those that were"
                              : "");
}

/* The length of sequences as keys have it: "512", or "[512,128]" of several types of layers. */
static void print_lengths(const struct galvatron_spec *spec, char *out, size_t size)
{
    size_t used = 0;
    bool list = spec->type_count > 1;
    *out = '\0';
    for (int i = 0; i < spec->type_count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld",
                                 !list    ? ""
                                 : i == 0 ? "["
                                          : ",",
                                 (long long)spec->types[i].seq);
    if (list && used < size)
        snprintf(out + used, size - used, "]");
}

/* ---- computation_*.json ---- */

/* A key "layertype_KIND_bszB_seqS". */
struct timing {
    int type;        /* -1: embedding and head */
    double batch;    /* 0: the key does not say */
    const char *seq; /* NULL: the key does not say; borrowed from the key */
    double ms;       /* per sample */
};

struct timings {
    const char *path;
    struct timing *items;
    size_t count, capacity;
};

/* false: the key is of something else. */
static bool parse_timing(const char *key, struct timing *out)
{
    static const char prefix[] = "layertype_";
    char *end;
    if (strncmp(key, prefix, strlen(prefix)) != 0)
        return false;
    key += strlen(prefix);
    *out = (struct timing){.type = -1};
    if (strncmp(key, "other", strlen("other")) == 0)
        end = (char *)key + strlen("other");
    else
        out->type = (int)strtol(key, &end, 10);
    if (end == key || out->type >= GALVATRON_TYPES_MAX)
        return false;
    if (end[0] == '_' && end[1] >= '0' && end[1] <= '9')
        strtol(end + 1, &end, 10);
    if (!*end)
        return true;
    if (strncmp(end, "_bsz", 4) != 0)
        return false;
    key = end + 4;
    out->batch = (double)strtol(key, &end, 10);
    if (end == key || out->batch <= 0)
        return false;
    if (strncmp(end, "_seq", 4) == 0 && end[4])
        out->seq = end + 4;
    return out->seq || !*end;
}

static int read_timings(json_t *root, struct timings *out, struct error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        struct timing timing;
        if (!parse_timing(key, &timing))
            continue;
        int rc = files_number(out->path, key, value, timing.type >= 0, &timing.ms, err);
        if (rc < 0)
            return rc;
        out->items = grow(out->items, out->count, &out->capacity, sizeof *out->items);
        out->items[out->count++] = timing;
    }
    return 0;
}

/* The points of a type: total milliseconds by batch (of this length), or milliseconds per sample by
 * length (of batches of 1). */
static size_t take_points(const struct timings *timings, int type, bool by_batch, const char *seq,
                          double *x, double *y)
{
    size_t count = 0;
    for (size_t i = 0; i < timings->count; i++) {
        const struct timing *one = &timings->items[i];
        if (one->type != type || !one->seq || one->batch == 0 ||
            (by_batch ? strcmp(one->seq, seq) != 0 : one->batch != 1))
            continue;
        char *end;
        x[count] = by_batch ? one->batch : (double)strtoll(one->seq, &end, 10);
        y[count] = by_batch ? one->batch * one->ms : one->ms;
        count += by_batch || !*end;
    }
    return count;
}

/* What a type was profiled for if nobody says so. */
static enum galvatron_mode guess_mode(const struct timings *timings, int type, const char *seq,
                                      double *x, double *y)
{
    size_t lengths = type < 0 ? 2 : 3;
    if (count_distinct(x, take_points(timings, type, true, seq, x, y)) >= 2)
        return GALVATRON_BATCH;
    return count_distinct(x, take_points(timings, type, false, seq, x, y)) >= lengths
               ? GALVATRON_SEQUENCE
               : GALVATRON_STATIC;
}

/* As they stand the first value of a type counts; of a file whose mode was guessed the first of
 * this length. */
static int take_static(const struct timings *timings, int type, const char *seq, const char *all,
                       bool guessed, struct galvatron_line *out, struct error *err)
{
    for (size_t i = 0; i < timings->count; i++) {
        const struct timing *one = &timings->items[i];
        bool same = !one->seq || strcmp(one->seq, seq) == 0 || strcmp(one->seq, all) == 0;
        if (one->type != type || (guessed && !same))
            continue;
        *out = (struct galvatron_line){one->ms, 0};
        return 0;
    }
    char name[32];
    snprintf(name, sizeof name, type < 0 ? "other" : "%d", type);
    return error_set(err, -EINVAL,
                     "'%s' has no layertype_%s_bszB_seq%s, nor one without a length: it was not "
                     "measured with sequences of %s",
                     timings->path, name, type < 0 ? all : seq, seq);
}

/* Curves: a line of time by batch; or, by length, a parabola for layers and a line for the rest. */
static int take_curve(const struct timings *timings, int type, int64_t seq, bool by_batch,
                      double *x, double *y, struct galvatron_line *out, struct error *err)
{
    char length[32], name[32];
    double curve[3] = {0};
    int degree = !by_batch && type >= 0 ? 2 : 1;
    snprintf(length, sizeof length, "%lld", (long long)seq);
    snprintf(name, sizeof name, type < 0 ? "other" : "%d", type);
    size_t count = take_points(timings, type, by_batch, length, x, y);
    if (count_distinct(x, count) < (size_t)degree + 1)
        return error_set(err, -EINVAL,
                         "'%s': time_mode %s needs layertype_%s_bsz%s_seq%s of %d %s, and there "
                         "are %zu: profile more, or use time_mode static",
                         timings->path, by_batch ? "batch" : "sequence", name, by_batch ? "B" : "1",
                         by_batch ? length : "S", degree + 1, by_batch ? "batch sizes" : "lengths",
                         count_distinct(x, count));
    fit(x, y, count, degree, curve);
    if (by_batch)
        *out = (struct galvatron_line){curve[1], curve[0]};
    else
        out->slope = (curve[2] * (double)seq + curve[1]) * (double)seq + curve[0];
    return 0;
}

static int take_computation(const char *path, json_t *root, const struct galvatron_spec *spec,
                            struct galvatron_profile *out, struct error *err)
{
    struct timings timings = {.path = path};
    char all[GALVATRON_TYPES_MAX * 24], seq[32];
    int rc = read_timings(root, &timings, err);
    double *x = xcalloc(timings.count + 1, sizeof *x), *y = xcalloc(timings.count + 1, sizeof *y);
    print_lengths(spec, all, sizeof all);
    for (int i = 0; i <= spec->type_count && rc == 0; i++) {
        int type = i < spec->type_count ? i : -1;
        int64_t length = spec->types[type < 0 ? 0 : type].seq;
        struct galvatron_line *line = type < 0 ? &out->other_ms : &out->layers[type].forward_ms;
        enum galvatron_mode mode = spec->time_mode;
        snprintf(seq, sizeof seq, "%lld", (long long)length);
        if (mode == GALVATRON_AUTO)
            mode = guess_mode(&timings, type, seq, x, y);
        rc = mode == GALVATRON_STATIC
                 ? take_static(&timings, type, seq, all, spec->time_mode == GALVATRON_AUTO, line,
                               err)
                 : take_curve(&timings, type, length, mode == GALVATRON_BATCH, x, y, line, err);
    }
    const char *name = strrchr(path, '/');
    out->mixed = spec->mixed == GALVATRON_AS_PROFILED ? strstr(name, "_fp32") == NULL
                                                      : spec->mixed == GALVATRON_YES;
    free(x);
    free(y);
    free(timings.items);
    return rc;
}

/* ---- memory_*.json ---- */

/* Read an object {"1": MB, "2": MB, ...}, each times `scale`; other keys are passed over. */
static int take_table(const char *path, const char *name, const json_t *object, double divisor,
                      double factor, struct galvatron_table *out, struct error *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return error_set(err, -EINVAL,
                         "'%s': %s is missing, or no object by degree: {\"1\": MB, \"2\": MB, ...}",
                         path, name);
    json_object_foreach((json_t *)object, key, value)
    {
        char *end, full[128];
        double number;
        long degree = strtol(key, &end, 10);
        if (*end || end == key || degree < 1 || degree > GALVATRON_DEVICES_MAX)
            continue;
        snprintf(full, sizeof full, "%s.%s", name, key);
        int rc = files_number(path, full, value, false, &number, err);
        if (rc == 0 && !galvatron_put(out, (int)degree, number / divisor * factor))
            rc = error_set(err, -EINVAL, "'%s': %s has more than %d degrees", path, name,
                           GALVATRON_TABLE_MAX);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Which lengths of sequences are read, and how values of another length are scaled. */
struct lengths {
    const char *suffix; /* of names: "_sp", or "" */
    bool scaled;        /* from the longest; parameters from the shortest */
    char shortest[32], longest[32];
};

/* The part of NAMESUFFIX for a length; the object itself if it has a member `has`. */
static int find_part(const char *path, const json_t *root, const char *name,
                     const struct lengths *lengths, const char *has, const char *length,
                     const json_t **out, struct error *err)
{
    char key[64];
    snprintf(key, sizeof key, "%s%s", name, lengths->suffix);
    const json_t *part = json_object_get(root, key);
    if (!json_is_object(part))
        return error_set(err, -EINVAL, "'%s': %s is missing%s", path, key,
                         *lengths->suffix ? ": sequence_parallel needs profiles of it" : "");
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

/* The shortest and the longest length of a type; both the spec's where memory is taken as it
 * stands. */
static int set_lengths(const char *path, const json_t *root, const char *name, int64_t seq,
                       struct lengths *lengths, struct error *err)
{
    char key[64], *end;
    const char *length;
    json_t *value;
    long long low = 0, high = 0;
    snprintf(lengths->shortest, sizeof lengths->shortest, "%lld", (long long)seq);
    strcpy(lengths->longest, lengths->shortest);
    if (!lengths->scaled)
        return 0;
    snprintf(key, sizeof key, "%s%s", name, lengths->suffix);
    json_object_foreach(json_object_get(root, key), length, value)
    {
        long long number = strtoll(length, &end, 10);
        if (*end || number <= 0)
            continue;
        low = low == 0 || number < low ? number : low;
        high = number > high ? number : high;
    }
    if (high == 0)
        return error_set(err, -EINVAL,
                         "'%s': %s is missing, or not by length of sequences, as memory_mode "
                         "sequence needs it",
                         path, key);
    snprintf(lengths->shortest, sizeof lengths->shortest, "%lld", low);
    snprintf(lengths->longest, sizeof lengths->longest, "%lld", high);
    return 0;
}

static int take_layer(const char *path, const json_t *root, int type, int64_t seq,
                      struct lengths *lengths, struct galvatron_layer *out, struct error *err)
{
    static const char name[] = "tp_activation_per_bsz_dict";
    char key[32];
    const json_t *part;
    snprintf(key, sizeof key, "layertype_%d", type);
    int rc = set_lengths(path, root, key, seq, lengths, err);
    if (rc == 0)
        rc = find_part(path, root, key, lengths, "parameter_size", lengths->shortest, &part, err);
    if (rc == 0)
        rc = files_number(path, "parameter_size", json_object_get(part, "parameter_size"), true,
                          &out->parameter_mb, err);
    if (rc == 0)
        rc = find_part(path, root, key, lengths, "parameter_size", lengths->longest, &part, err);
    if (rc < 0)
        return rc;
    double divisor = lengths->scaled ? strtod(lengths->longest, NULL) : 1;
    double factor = lengths->scaled ? (double)seq : 1;
    const json_t *activation = json_object_get(part, name);
    const json_t *checkpoint = json_object_get(activation, "checkpoint");
    rc = take_table(path, name, activation, divisor, factor, &out->activation_mb, err);
    if (rc == 0 && checkpoint)
        rc = files_number(path, "checkpoint", checkpoint, false, &out->checkpoint_mb, err);
    out->checkpoint_mb = out->checkpoint_mb / divisor * factor;
    return rc < 0 ? error_prefix(err, rc, "%s%s", key, lengths->suffix) : 0;
}

static int take_other(const char *path, const json_t *root, const char *name,
                      const struct lengths *lengths, const char *length, int64_t seq,
                      struct galvatron_other *out, struct error *err)
{
    const json_t *part;
    double divisor = lengths->scaled ? strtod(length, NULL) : 1;
    int rc = find_part(path, root, name, lengths, "model_states", length, &part, err);
    if (rc == 0)
        rc = take_table(path, "model_states", json_object_get(part, "model_states"), 1, 1,
                        &out->states_mb, err);
    if (rc == 0)
        rc = take_table(path, "activation", json_object_get(part, "activation"), divisor,
                        lengths->scaled ? (double)seq : 1, &out->activation_mb, err);
    return rc < 0 ? error_prefix(err, rc, "%s%s", name, lengths->suffix) : 0;
}

/* Without a mode, memory of this length is taken as it stands, and else scaled. */
static bool is_scaled(const json_t *root, const struct galvatron_spec *spec, const char *suffix)
{
    char key[64], length[32];
    snprintf(key, sizeof key, "layertype_0%s", suffix);
    snprintf(length, sizeof length, "%lld", (long long)spec->types[0].seq);
    const json_t *part = json_object_get(root, key);
    return spec->memory_mode == GALVATRON_SEQUENCE ||
           (spec->memory_mode == GALVATRON_AUTO && spec->type_count == 1 && *suffix &&
            json_object_size(part) > 1 && !json_object_get(part, "parameter_size") &&
            !json_object_get(part, length));
}

static int take_memory(const char *path, json_t *root, const struct galvatron_spec *spec,
                       struct galvatron_profile *out, struct error *err)
{
    struct lengths lengths = {.suffix = ""};
    char all[GALVATRON_TYPES_MAX * 24];
    out->sequence_parallel =
        spec->sequence_parallel == GALVATRON_AS_PROFILED
            ? json_object_get(root, "layertype_0_sp") && !json_object_get(root, "layertype_0")
            : spec->sequence_parallel == GALVATRON_YES;
    if (out->sequence_parallel)
        lengths.suffix = "_sp";
    lengths.scaled = is_scaled(root, spec, lengths.suffix);
    int rc = 0;
    for (int i = 0; i < spec->type_count && rc == 0; i++)
        rc = take_layer(path, root, i, spec->types[i].seq, &lengths, &out->layers[i], err);
    print_lengths(spec, all, sizeof all);
    const char *length = lengths.scaled ? lengths.longest : all;
    int64_t seq = spec->types[0].seq;
    if (rc == 0)
        rc = take_other(path, root, "other_memory_pp_off", &lengths, length, seq, &out->alone, err);
    if (rc == 0)
        rc = take_other(path, root, "other_memory_pp_on_first", &lengths, length, seq, &out->first,
                        err);
    if (rc == 0)
        rc = take_other(path, root, "other_memory_pp_on_last", &lengths, length, seq, &out->last,
                        err);
    return rc;
}

/* ---- of the machines ---- */

static int put_rate(const char *path, const char *key, const json_t *value, int size,
                    struct galvatron_table *out, struct error *err)
{
    double number;
    int rc = files_number(path, key, value, true, &number, err);
    if (rc == 0 && !galvatron_put(out, size, number))
        rc = error_set(err, -EINVAL, "'%s' has more than %d sizes of groups", path,
                       GALVATRON_TABLE_MAX);
    return rc;
}

static int take_allreduce(const char *path, json_t *root, const struct galvatron_spec *spec,
                          struct galvatron_profile *out, struct error *err)
{
    (void)spec;
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        int size, neighbours, used = 0;
        if (sscanf(key, "allreduce_size_%d_consec_%d%n", &size, &neighbours, &used) != 2 ||
            key[used] || size < 2 || neighbours < 0 || neighbours > 1)
            continue;
        int rc = put_rate(path, key, value, size, &out->allreduce_gb_s[neighbours], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int take_p2p(const char *path, json_t *root, const struct galvatron_spec *spec,
                    struct galvatron_profile *out, struct error *err)
{
    (void)spec;
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        int size, used = 0;
        if (sscanf(key, "pp_size_%d%n", &size, &used) != 1 || key[used] || size < 2)
            continue;
        int rc = put_rate(path, key, value, size, &out->p2p_gb_s, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int take_overlap(const char *path, json_t *root, const struct galvatron_spec *spec,
                        struct galvatron_profile *out, struct error *err)
{
    (void)spec;
    return files_number(path, "overlap_coe", json_object_get(root, "overlap_coe"), true,
                        &out->overlap, err);
}

static struct galvatron_collective *find_collective(struct galvatron_profile *profile,
                                                    bool all_to_all, int group)
{
    int i = 0;
    while (i < profile->collective_count && (profile->collectives[i].all_to_all != all_to_all ||
                                             profile->collectives[i].group != group))
        i++;
    if (i == GALVATRON_TABLE_MAX)
        return NULL;
    profile->collectives[i].all_to_all = all_to_all;
    profile->collectives[i].group = group;
    profile->collective_count += i == profile->collective_count;
    return &profile->collectives[i];
}

static int take_collectives(const char *path, json_t *root, const struct galvatron_spec *spec,
                            struct galvatron_profile *out, struct error *err)
{
    (void)spec;
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        char name[16];
        int group, mb, used = 0;
        double ms;
        if (sscanf(key, "%15[a-z2]_size_%d_%dMB_time%n", name, &group, &mb, &used) != 3 ||
            key[used] || group < 2 || mb < 1)
            continue;
        bool all_to_all = strcmp(name, "all2all") == 0;
        if (!all_to_all && strcmp(name, "allreduce") != 0)
            continue;
        int rc = files_number(path, key, value, false, &ms, err);
        struct galvatron_collective *of = find_collective(out, all_to_all, group);
        if (rc == 0 && (!of || !galvatron_put(&of->ms, mb, all_to_all ? ms : ms / 2)))
            rc = error_set(err, -EINVAL, "'%s' has more than %d groups or sizes", path,
                           GALVATRON_TABLE_MAX);
        if (rc < 0)
            return rc;
    }
    for (int i = 0; i < out->collective_count; i++) {
        struct galvatron_collective *of = &out->collectives[i];
        double x[GALVATRON_TABLE_MAX], line[2];
        for (int k = 0; k < of->ms.count; k++)
            x[k] = of->ms.keys[k];
        if (of->ms.count < 2)
            return error_set(err, -EINVAL,
                             "'%s' has one size of messages among %d devices: profile two or more",
                             path, of->group);
        fit(x, of->ms.values, (size_t)of->ms.count, 1, line);
        of->line = (struct galvatron_line){line[1], line[0]};
    }
    return 0;
}

static const struct {
    const char *name;
    bool of_model;    /* else of machines */
    bool of_shape;    /* its name ends in the number of nodes, and of devices on each */
    bool collectives; /* only read if collectives are priced by size */
    int (*take)(const char *path, json_t *root, const struct galvatron_spec *spec,
                struct galvatron_profile *out, struct error *err);
} files[] = {
    {"computation_", true, false, false, take_computation},
    {"memory_", true, false, false, take_memory},
    {"allreduce_bandwidth", false, true, false, take_allreduce},
    {"p2p_bandwidth", false, true, false, take_p2p},
    {"overlap_coefficient", false, false, false, take_overlap},
    {"sp_time", false, true, true, take_collectives},
};

int galvatron_load(const char *model_folder, const char *machine_folder,
                   const struct galvatron_spec *spec, struct galvatron_profile *out,
                   struct error *err)
{
    struct galvatron_profile *profile = xcalloc(1, sizeof *profile);
    int rc = galvatron_spec_check(spec, err);
    for (size_t i = 0; i < sizeof files / sizeof *files && rc == 0; i++) {
        char *path = NULL;
        json_t *root = NULL;
        if (files[i].collectives && !spec->measured_collectives)
            continue;
        rc = files[i].of_model ? find_model_file(model_folder, files[i].name, &path, err)
                               : find_machine_file(machine_folder, files[i].name, files[i].of_shape,
                                                   spec, &path, err);
        if (rc == 0)
            rc = files_read(path, &root, err);
        if (rc == 0)
            rc = files[i].take(path, root, spec, profile, err);
        json_decref(root);
        free(path);
    }
    if (rc == 0)
        *out = *profile;
    free(profile);
    return rc;
}

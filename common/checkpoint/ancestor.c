/* ancestor.c - finds a checkpoint by its name, and compares two job files field by field. */
#include "common/checkpoint/ancestor.h"

#include "common/base/memory.h"
#include "common/config/folders.h"
#include "common/models/model.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- which checkpoint ---- */

static bool ancestor_is_complete(const char *folder, const char *name)
{
    char *path = xasprintf("%s/%s/" MANIFEST_NAME, folder, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* The newest complete checkpoint in a folder; NULL: it has none. */
static char *ancestor_newest(DIR *list, const char *folder)
{
    char *newest = NULL;
    uint64_t best_step = 0, best_epoch = 0, step, epoch;
    for (struct dirent *entry; (entry = readdir(list));) {
        if (!checkpoint_name_parse(entry->d_name, &step, &epoch) ||
            (newest && (step < best_step || (step == best_step && epoch < best_epoch))) ||
            !ancestor_is_complete(folder, entry->d_name))
            continue;
        free(newest);
        newest = xasprintf("%s/%s", folder, entry->d_name);
        best_step = step;
        best_epoch = epoch;
    }
    return newest;
}

int ancestor_find(const char *folder, char **out, struct error *err)
{
    if (ancestor_is_complete(folder, ".")) {
        *out = xstrdup(folder);
        return 0;
    }
    DIR *list = opendir(folder);
    if (!list && errno != ENOENT && errno != ENOTDIR)
        return error_set(err, -errno, "'%s': %s", folder, strerror(errno));
    *out = list ? ancestor_newest(list, folder) : NULL;
    if (list)
        closedir(list);
    if (*out)
        return 0;
    return error_set(err, -ENOENT,
                     "'%s' has no manifest.json: name the folder of one step, such as "
                     ".../step-200.epoch-1, or one that has several of those",
                     folder);
}

int ancestor_read(const char *folder, bool weights_only, struct ancestor *out,
                  struct manifest *manifest, struct error *err)
{
    struct manifest read;
    int rc = manifest_read(folder, &read, err);
    if (rc < 0)
        return rc;
    const struct manifest_origin *of = &read.origin;
    *out = (struct ancestor){
        .folder = xstrdup(folder),
        .spec = of->spec ? xstrdup(of->spec) : NULL,
        .step = weights_only ? 0 : of->step,
        .samples = weights_only ? 0 : of->samples,
        .weights_only = weights_only,
    };
    if (manifest)
        *manifest = read;
    else
        manifest_finish(&read);
    return 0;
}

void ancestor_finish(struct ancestor *ancestor)
{
    free(ancestor->folder);
    free(ancestor->spec);
    *ancestor = (struct ancestor){0};
}

/* ---- what differs ---- */

static void ancestor_add(struct texts *texts, char *line)
{
    texts->items = grow(texts->items, texts->count, &texts->capacity, sizeof *texts->items);
    texts->items[texts->count++] = line;
}

void ancestor_forget(struct texts *differences)
{
    for (size_t i = 0; i < differences->count; i++)
        free(differences->items[i]);
    free(differences->items);
    *differences = (struct texts){0};
}

/* "train.lr is 0.001 and was 0.003" */
static char *ancestor_print(const char *path, const char *now, const char *before)
{
    return xasprintf("%s is %.300s and was %.300s", path, now ? now : "not given",
                     before ? before : "not given");
}

static bool path_in(const char *path, const char *const *list)
{
    for (size_t i = 0; list[i]; i++)
        if (strcmp(path, list[i]) == 0)
            return true;
    return false;
}

static void ancestor_note(void *context, const char *path, const char *now, const char *before)
{
    ancestor_add(context, ancestor_print(path, now, before));
}

/* Fields that do not make another model: `weights` were those of step 0, `seq` is how much of the
 * data a sample has. Whether two spellings of `ffn` and `tied` are the same the tensors tell. */
static const char *const not_the_model[] = {"weights", "seq", "ffn", "tied", NULL};

static void ancestor_note_model(void *context, const char *path, const char *now,
                                const char *before)
{
    char *first = *(char **)context;
    if (!first && !path_in(path, not_the_model))
        *(char **)context = xasprintf("model.%s is %.100s and was %.100s", path,
                                      now ? now : "not given", before ? before : "not given");
}

/* With the values that a model computes with where the file does not give them. */
static struct job_model ancestor_settle(const struct job_model *given)
{
    struct job_model model = *given;
    if (!model.kv_heads)
        model.kv_heads = model.heads;
    if (!model.head_dim && model.heads)
        model.head_dim = model.hidden / model.heads;
    if (model.norm_epsilon == 0)
        model.norm_epsilon = 1e-5;
    if (model.rope_theta == 0)
        model.rope_theta = 1e4;
    return model;
}

/* Tensors may have the same shapes and be computed with otherwise. */
static int ancestor_compare_model(const struct job_config *job, const struct job_config *before,
                                  struct error *err)
{
    const struct job_model now = ancestor_settle(&job->model),
                           was = ancestor_settle(&before->model);
    char *first = NULL;
    fields_compare(fields_find(job_config_fields, "model")->fields, &now, &was, "",
                   ancestor_note_model, &first);
    int rc = first ? error_set(err, -EINVAL, "another model: %s", first) : 0;
    free(first);
    return rc;
}

static int ancestor_compare_graph(const struct job_config *before, const struct graph *graph,
                                  struct error *err)
{
    const struct manifest_origin nothing = {.job = ""};
    struct graph *was;
    struct manifest tensors;
    int rc = model_build(&before->model, before->train.dtype, &was, err);
    if (rc < 0)
        return rc;
    manifest_init(&tensors, &nothing, was);
    rc = manifest_compare(&tensors, graph, err);
    manifest_finish(&tensors);
    graph_destroy(was);
    return rc;
}

static void ancestor_compare_rest(const struct job_config *job, const struct job_config *before,
                                  struct texts *differences)
{
    for (const struct field *field = job_config_fields; field->key; field++) {
        const struct field row[] = {*field, {.key = NULL}};
        if (strcmp(field->key, "model") != 0)
            fields_compare(row, job, before, "", ancestor_note, differences);
    }
    char now[32], was[32];
    snprintf(now, sizeof now, "%" PRId64, job->model.seq);
    snprintf(was, sizeof was, "%" PRId64, before->model.seq);
    if (job->model.seq != before->model.seq)
        ancestor_note(differences, "model.seq", now, was);
}

int ancestor_compare(const struct ancestor *ancestor, const struct manifest *manifest,
                     const struct job_config *job, const struct graph *graph,
                     struct texts *differences, struct error *err)
{
    struct job_config *before = NULL;
    struct error why;
    if (ancestor->spec)
        job_config_parse(ancestor->spec, strlen(ancestor->spec), "its job file", &before, &why);
    int rc = before ? ancestor_compare_model(job, before, err) : 0;
    if (rc == 0 && manifest)
        rc = manifest_compare(manifest, graph, err);
    else if (rc == 0 && before)
        rc = ancestor_compare_graph(before, graph, err);
    if (rc == 0 && before)
        ancestor_compare_rest(job, before, differences);
    else if (rc == 0)
        ancestor_add(
            differences,
            ancestor->spec
                ? xasprintf("the job file it was written under is not one of this release's "
                            "(%s), so only its tensors were compared",
                            why.text)
                : xstrdup("an older release wrote it, without its job file, so only its "
                          "tensors were compared"));
    job_config_destroy(before);
    return rc < 0 ? error_prefix(err, rc, "the checkpoint '%s'", ancestor->folder) : 0;
}

void ancestor_compare_files(const struct manifest *manifest, const struct manifest_file *files,
                            size_t count, struct texts *differences)
{
    const struct manifest_origin *was = &manifest->origin;
    size_t i = 0;
    while (i < count && i < was->file_count && files[i].size == was->files[i].size &&
           files[i].hash == was->files[i].hash)
        i++;
    if (was->file_count == 0 || (i == count && i == was->file_count))
        return;
    const char *now = i < count ? files[i].path : "none";
    const char *before = i < was->file_count ? was->files[i].path : "none";
    ancestor_add(
        differences,
        strcmp(now, before) == 0
            ? xasprintf("the data: file %zu, %.300s, has other contents", i + 1, now)
            : xasprintf("the data: file %zu is %.300s and was %.300s", i + 1, now, before));
}

int ancestor_leaves(const struct ancestor *ancestor, const struct job_config *job,
                    struct error *err)
{
    if (ancestor->step < (uint64_t)job->train.steps)
        return 0;
    return error_set(err, -EINVAL,
                     "train.steps is %" PRId64 ", and the checkpoint '%s' is of step %" PRIu64
                     ": nothing is left to train, write more steps",
                     job->train.steps, ancestor->folder, ancestor->step);
}

/* inputs.c - what the command line names. A plan is known by reading it, a cluster by its `kind`,
 * and a job by its sections. */
#include "coordinator/cli/inputs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/config/document.h"
#include "common/plan/plan.h"
#include "coordinator/cli/exit.h"
#include "coordinator/planner/check.h"
#include "coordinator/planner/planner.h"

static bool filekind_is_plan(const char *text)
{
    struct plan *plan;
    if (plan_decode(text, &plan, NULL) < 0)
        return false;
    plan_destroy(plan);
    return true;
}

static bool filekind_is(const struct document *document, const char *kind)
{
    const yaml_node_t *node = document_find(document, "kind");
    return node && node->type == YAML_SCALAR_NODE &&
           strcmp((const char *)node->data.scalar.value, kind) == 0;
}

enum file_kind filekind_of(const char *text)
{
    enum file_kind kind = FILE_OTHER;
    struct document *document;
    if (filekind_is_plan(text))
        return FILE_PLAN;
    if (document_parse(text, strlen(text), "", &document, NULL) < 0)
        return FILE_OTHER;
    if (filekind_is(document, "Cluster") || filekind_is(document, "NodeList"))
        kind = FILE_CLUSTER;
    else if (document_find(document, "model") && document_find(document, "train"))
        kind = FILE_JOB;
    document_destroy(document);
    return kind;
}

bool filekind_explain(const char *text, const char *name, enum file_kind wanted, struct error *err)
{
    enum file_kind kind = filekind_of(text);
    if (kind == wanted || kind == FILE_OTHER)
        return false;
    if (kind == FILE_PLAN && wanted == FILE_JOB)
        error_set(err, 0, "'%s' is a plan: give its job file with -f, and the plan with --plan %s",
                  name, name);
    else if (kind == FILE_PLAN)
        error_set(err, 0, "'%s' is a plan: give it with --plan, and a cluster with --cluster",
                  name);
    else if (wanted == FILE_PLAN)
        error_set(err, 0, "'%s' describes a %s: a plan is what 'gimbal plan -o json' writes", name,
                  kind == FILE_JOB ? "job" : "cluster");
    else if (kind == FILE_CLUSTER)
        error_set(err, 0,
                  "'%s' describes a cluster: give a job file with -f, and the cluster to 'gimbal "
                  "plan' with --cluster %s",
                  name, name);
    else
        error_set(err, 0, "'%s' describes a job: give it with -f, and a cluster with --cluster",
                  name);
    return true;
}

int jobfile_path(const struct invocation *invocation, const char **file, struct error *err)
{
    if (invocation->argument_count == 0)
        return EXIT_DONE;
    if (*file)
        return error_set(err, EXIT_USAGE, "'%s' is a second job file, besides -f %s",
                         invocation->arguments[0], *file);
    *file = invocation->arguments[0];
    return EXIT_DONE;
}

int jobfile_refuse_plan(const char *text, const char *name, struct error *err)
{
    bool is_plan = filekind_of(text) == FILE_PLAN;
    return is_plan && filekind_explain(text, name, FILE_JOB, err) ? EXIT_USAGE : EXIT_DONE;
}

int jobfile_load(const char *path, char **text, struct job_config **job, struct error *err)
{
    if (!path)
        return error_set(err, EXIT_USAGE, "needs a job file: -f job.yaml");
    bool standard = strcmp(path, "-") == 0;
    char *content = NULL;
    int rc = standard ? file_read_open(STDIN_FILENO, "standard input", &content, err)
                      : file_read(path, &content, err);
    if (rc < 0 || !content)
        return exit_of_errno(rc);
    return jobfile_take(content, standard ? "standard input" : path, text, job, err);
}

int jobfile_take(char *content, const char *name, char **text, struct job_config **job,
                 struct error *err)
{
    struct job_config *config = NULL;
    int rc = job_config_parse(content, strlen(content), name, &config, err);
    if (rc == 0) {
        rc = planner_check(config, err);
        if (rc < 0)
            job_config_place(content, strlen(content), name, err);
    }
    if (rc < 0) {
        bool is_other = filekind_explain(content, name, FILE_JOB, err);
        job_config_destroy(config);
        free(content);
        return is_other ? EXIT_USAGE : EXIT_INPUT;
    }
    *text = content;
    *job = config;
    return EXIT_DONE;
}

bool named_job(const char *text)
{
    size_t digits = strncmp(text, "j-", 2) == 0 ? strspn(text + 2, "0123456789") : 0;
    return digits > 0 && text[2 + digits] == '\0';
}

bool named_path(const char *text)
{
    return strchr(text, '/') || (!named_job(text) && access(text, F_OK) == 0);
}

static const char *named_name_of(const void *item, size_t name)
{
    return *(char *const *)((const char *)item + name);
}

const char *named_missing(const struct invocation *invocation, void **items, size_t all,
                          size_t name)
{
    for (int n = 0; n < invocation->argument_count; n++) {
        size_t at = 0;
        while (at < all && strcmp(named_name_of(items[at], name), invocation->arguments[n]) != 0)
            at++;
        if (at == all)
            return invocation->arguments[n];
    }
    return NULL;
}

int named_bring(const struct invocation *invocation, void **items, size_t all, size_t name,
                const char *kind, size_t *count, struct error *err)
{
    *count = 0;
    for (int n = 0; n < invocation->argument_count; n++) {
        const char *wanted = invocation->arguments[n];
        size_t at = 0;
        while (at < all && strcmp(named_name_of(items[at], name), wanted) != 0)
            at++;
        if (at == all)
            return error_set(err, EXIT_INPUT, "there is no %s '%s'", kind, wanted);
        if (at < *count)
            continue; /* an earlier argument named it */
        void *item = items[at];
        items[at] = items[*count];
        items[(*count)++] = item;
    }
    return EXIT_DONE;
}

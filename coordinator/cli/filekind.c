/* filekind.c - knows a plan by reading it, a cluster by its `kind`, and a job by its sections. */
#include "coordinator/cli/filekind.h"

#include "common/config/document.h"
#include "common/plan/plan.h"

#include <string.h>

static bool is_plan(const char *text)
{
    struct plan *plan;
    if (plan_decode(text, &plan, NULL) < 0)
        return false;
    plan_destroy(plan);
    return true;
}

static bool has_kind(const struct document *document, const char *kind)
{
    const yaml_node_t *node = document_find(document, "kind");
    return node && node->type == YAML_SCALAR_NODE &&
           strcmp((const char *)node->data.scalar.value, kind) == 0;
}

enum file_kind filekind_of(const char *text)
{
    enum file_kind kind = FILE_OTHER;
    struct document *document;
    if (is_plan(text))
        return FILE_PLAN;
    if (document_parse(text, strlen(text), "", &document, NULL) < 0)
        return FILE_OTHER;
    if (has_kind(document, "Cluster") || has_kind(document, "NodeList"))
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

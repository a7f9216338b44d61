/* narrowed.c - what is foreign to Galvatron's formula becomes what the job forbids. */
#include "coordinator/planner/searches/narrowed.h"

#include "common/base/memory.h"
#include "common/placement/role.h"
#include "common/plan/plan.h"

#include <stdlib.h>
#include <string.h>

#define ZERO_UNKNOWN (1u << 1)
#define RECOMPUTE_UNKNOWN (1u << RECOMPUTE_SELECTIVE)

static bool is_known(const char *role)
{
    return strcmp(role, "batch") == 0 || strcmp(role, "tensor") == 0 ||
           strcmp(role, "tensor_seq") == 0;
}

void narrowed_init(struct narrowed *narrowed, const struct planner_request *request)
{
    size_t known = 0, role_count = 0;
    struct job_plan *plan = &narrowed->job.plan;
    const struct texts *forbidden = &request->job->plan.forbid.roles;
    while (roles[role_count])
        role_count++;
    *narrowed = (struct narrowed){.job = *request->job, .request = *request};
    narrowed->request.job = &narrowed->job;
    plan->forbid.roles.items = xcalloc(forbidden->count + role_count, sizeof(char *));
    for (; known < forbidden->count; known++)
        plan->forbid.roles.items[known] = forbidden->items[known];
    for (size_t i = 0; i < role_count; i++)
        if (!is_known(roles[i]->name))
            plan->forbid.roles.items[known++] = (char *)roles[i]->name;
    plan->forbid.roles.count = known;
    plan->forbid.zero |= ZERO_UNKNOWN;
    plan->forbid.recompute |= RECOMPUTE_UNKNOWN;
    if (!plan->schedule)
        plan->schedule = (char *)"1f1b";
}

void narrowed_finish(struct narrowed *narrowed)
{
    free(narrowed->job.plan.forbid.roles.items);
}

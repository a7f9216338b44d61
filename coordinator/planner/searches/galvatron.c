/* galvatron.c - the space of Galvatron (arXiv 2211.13878) with our costs: its plans are divided
 * over powers of two, with layers in even runs and the remainder in the last stage; each stage is
 * planned in isolation, as in bmw.c. galvatron/search.h has the same space with that project's own
 * costs. */
#include "coordinator/planner/searches/bmw.h"
#include "coordinator/planner/searches/narrowed.h"
#include "coordinator/planner/searches/searches.h"

#include "common/base/memory.h"

#include <stdlib.h>

static bool is_power_of_two(int number)
{
    return (number & (number - 1)) == 0;
}

static struct plan *even_solve(struct instance *instance)
{
    int stages = instance->point.stages, layers = instance->blocks - 2;
    if (!is_power_of_two(stages) || !is_power_of_two(instance->point.devices) || layers < stages)
        return NULL;
    int *ends = xcalloc((size_t)stages, sizeof *ends);
    for (int i = 0; i < stages; i++)
        ends[i] = i == stages - 1 ? instance->blocks : 1 + (i + 1) * (layers / stages);
    struct plan *plan = bmw_isolated(instance, ends);
    free(ends);
    return plan;
}

static int galvatron_run(const struct planner_request *request, struct planner_result *out,
                         struct error *err)
{
    static const struct sweep sweep = {.name = "galvatron", .solve = even_solve};
    struct narrowed narrowed;
    narrowed_init(&narrowed, request);
    int rc = sweep_run(&narrowed.request, &sweep, out, err);
    narrowed_finish(&narrowed);
    return rc;
}

const struct search search_galvatron = {.name = "galvatron", .run = galvatron_run};

/* programs.c - lowers every rank's program exactly as its executor will, so that both sides can
 * compare hashes and a slow rank can be recognized by the predicted time of its kernels. */
#include "coordinator/planning/programs.h"

#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/costs/shared_cores.h"

#include <errno.h>

/* Predicted time of the kernels in a step. */
static double price_kernels(const struct profile *profile, const struct program *program)
{
    struct program_cursor cursor = {0};
    double seconds = 0;
    while (program_next(program, PROGRAM_TRAIN, &cursor))
        if (cursor.instruction->kind == INSTRUCTION_KERNEL)
            seconds += profile_seconds(profile, NULL, program, cursor.instruction);
    return seconds;
}

int planning_lower(const struct planning_task *task, struct planning *planning, struct error *err)
{
    const struct fleet *fleet = &task->fleet;
    const struct planner_request ask = {.devices = fleet->devices,
                                        .device_count = (int)fleet->count};
    struct shared_cores used;
    int ranks = plan_ranks(planning->plan),
        rc = shared_cores_order(&ask, planning->plan, &used, err);
    planning->hashes = xcalloc((size_t)ranks, sizeof *planning->hashes);
    planning->compute_s = xcalloc((size_t)ranks, sizeof *planning->compute_s);
    struct ways *ways = ways_create();
    for (int rank = 0; rank < ranks && rc == 0; rank++) {
        struct program *program;
        if (atomic_load(&task->stop)) {
            rc = error_set(err, -ECANCELED, "nobody wants the plan any more");
            break;
        }
        rc = lower_with(ways, task->graph, planning->plan, rank, &program, err);
        if (rc < 0) {
            error_prefix(err, rc, "rank %d", rank);
            break;
        }
        planning->hashes[rank] = program_hash(program);
        /* at the speed that the device should have */
        size_t device = fleet_find(fleet, plan_device(planning->plan, rank));
        planning->compute_s[rank] =
            price_kernels(used.devices[rank].profile, program) / fleet->slowdowns[device];
        program_destroy(program);
    }
    ways_destroy(ways);
    shared_cores_finish(&used);
    return rc;
}

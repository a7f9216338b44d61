/* all_ranks.c - lowers once for ranks that do the same at the same time; they share the program. */
#include "coordinator/planner/all_ranks.h"

#include "common/program/lower.h"
#include "coordinator/planner/like_ranks.h"

#include <stdlib.h>

int all_ranks_lower(const struct planner_request *request, const struct plan *plan,
                    struct program **programs, struct error *err)
{
    bool alike = like_ranks_keep_pace(request, plan);
    struct ways *ways = ways_create();
    int rc = 0;
    for (int rank = 0; rank < plan_ranks(plan) && rc == 0; rank++) {
        int like =
            alike && rank > 0 ? program_like(programs[0], &plan->stages[0].mesh, rank) : rank;
        programs[rank] = programs[like];
        if (like != rank)
            continue;
        rc = lower_with(ways, request->graph, plan, rank, &programs[rank], err);
        planner_tell_work(request);
    }
    ways_destroy(ways);
    return rc;
}

void all_ranks_destroy(struct program **programs, int ranks)
{
    for (int rank = ranks - 1; rank >= 0; rank--)
        if (programs[rank] && programs[rank]->rank == rank)
            program_destroy(programs[rank]);
    free(programs);
}

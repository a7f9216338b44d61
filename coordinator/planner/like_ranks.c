/* like_ranks.c - recognizes plans that look the same from every rank.
 *
 * Take a plan of one stage and, in all ranks, swap two coordinates of one mesh axis (neither of
 * them 0 where coordinate 0 has extra work). Groups are mapped to groups, and if every group is
 * confined to one host exactly when its image is, each instruction takes as long as its image. The
 * simulation is then unchanged by the swap, so two ranks that are swapped have the same timeline.
 * Plans of several stages are excluded: their stages exchange messages, whose routes such a swap
 * does not preserve. */
#include "coordinator/planner/like_ranks.h"

#include "coordinator/planner/costs/hosts.h"

/* Whether each host holds exactly the full extent of the first axes, so that a group lies on one
 * host if and only if it runs along those axes alone. */
static bool hosts_are_extents(const struct planner_device *devices, const struct mesh *mesh)
{
    int share = hosts_share(devices, mesh_count(mesh)), extent = 1;
    for (int axis = 0; axis < mesh->axes && extent < share; axis++)
        extent *= mesh->size[axis];
    return extent == share;
}

bool like_ranks_keep_pace(const struct planner_request *request, const struct plan *plan)
{
    const struct planner_device *devices = request->devices;
    const struct mesh *mesh = &plan->stages[0].mesh;
    if (plan->stage_count > 1 || mesh->weights || !hosts_are_extents(devices, mesh))
        return false;
    for (int rank = 1; rank < mesh_count(mesh); rank++)
        if (devices[rank].profile != devices[0].profile)
            return false;
    return true;
}

/* like_ranks.c - a mesh that looks the same from all its ranks.
 *
 * Swap two coordinates of an axis (neither of them 0, where coordinate 0 has more to do) in all
 * ranks of a one-stage plan: groups become groups, and if every group lies on one host just where
 * its image does, every instruction's image takes as long. Then the simulation of the swapped ranks
 * is that of the ranks, swapped, so the two have the same timeline. Stages send each other
 * messages, whose ways such a swap does not keep. */
#include "coordinator/planner/like_ranks.h"

#include "coordinator/planner/costs/hosts.h"

/* Is each host the whole extent of the first axes, so that a group is on one just if it goes along
 * none but those? */
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

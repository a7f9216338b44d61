/* run_floor.c - tries every way to use some devices for the samples and the others otherwise.
 *
 * Of d devices that divide the samples one has its share of them, rounded up. It works on these
 * together with the k devices that divide the block otherwise, and exchanges messages with them:
 * the same kernels and messages as if these k were alone with so many samples, on axes of some
 * sizes in some order. (Not so with `hidden`, whose messages may be others beside an axis of
 * samples: messages are only counted of the roles that are tried on many devices.) They take least
 * where they are closest. What the d do in addition, for sharded weights, only takes more time. */
#include "coordinator/planner/exact/run_floor.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/request.h"
#include "coordinator/planner/exact/scouting.h"
#include "coordinator/planner/space/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void run_floors_finish(struct run_floors *floors)
{
    free(floors->groups);
    floors->groups = NULL;
    floors->count = floors->capacity = 0;
}

static bool splits_samples(const struct strategy *strategy, int axes)
{
    for (int axis = 0; axis < axes; axis++)
        if (strcmp(strategy->roles[axis]->name, "batch") == 0)
            return true;
    return false;
}

/* Whether nowhere messages among so many devices are faster than among the first ones. Of these a
 * host has as many as any, so as many groups as possible are on one host, where links are faster;
 * and between hosts every device has a card of its own. */
static bool are_closest(const struct planner_request *request, int devices)
{
    const struct profile *profile = request->devices[0].profile;
    int most = scouting_host(request), first = 1;
    while (first < request->device_count &&
           hosts_same(&request->devices[0], &request->devices[first]))
        first++;
    return first == most && profile->host.latency_s <= profile->network.latency_s &&
           profile->host.seconds_per_byte <= profile->network.seconds_per_byte &&
           (devices <= first || profile->network_cards == 0 || profile->network_cards >= most);
}

/* The least over all roles that do not split the samples. Sharded weights lengthen a micro-batch,
 * so these are left out, even if the job forbids others: the axes of samples may shard them. So are
 * the limits of a job on recomputation, which may shorten it, since what it computes again is not
 * kept and passed on. */
static void price_mesh(struct costs *costs, int block, const struct mesh *mesh, int64_t samples,
                       struct run_floor *least)
{
    const struct site *site = sites_add(&costs->sites, 0, mesh);
    size_t count;
    struct strategy *vectors = space_vectors(costs, site, block, samples, &count, NULL);
    for (size_t i = 0; i < count; i++) {
        for (int r = 0; r < RECOMPUTES && !splits_samples(&vectors[i], mesh->axes); r++) {
            struct part_cost cost = {0};
            vectors[i].recompute = (enum recompute)r;
            costs_block(costs, site, block, &vectors[i], NULL, samples, &cost, NULL);
            least->both_s = fmin(least->both_s, cost.forward_s + cost.backward_s);
            least->back_s = fmin(least->back_s, cost.backward_s);
        }
    }
    free(vectors);
}

/* In every order on every way to make up so many devices of axes. */
static void price_meshes(struct costs *costs, int block, struct mesh mesh, int devices,
                         int64_t samples, struct run_floor *least)
{
    if (devices == 1)
        price_mesh(costs, block, &mesh, samples, least);
    if (mesh.axes == AXES_MAX)
        return;
    mesh.axes++;
    for (int size = 2; size <= devices; size++) {
        mesh.size[mesh.axes - 1] = size;
        if (devices % size == 0)
            price_meshes(costs, block, mesh, devices / size, samples, least);
    }
}

static struct run_floor price_group(struct costs *costs, int block, int devices, int64_t samples)
{
    struct run_floor least = {INFINITY, INFINITY};
    if (devices >> AXES_MAX == 0 && are_closest(costs->request, devices)) {
        costs->one_rank = true; /* others can only take more */
        price_meshes(costs, block, (struct mesh){0}, devices, samples, &least);
        costs->one_rank = false;
    }
    return isfinite(least.both_s) ? least : (struct run_floor){0, 0};
}

static struct run_floor group_floor(struct run_floors *floors, int block, int devices,
                                    int64_t samples)
{
    for (size_t i = 0; i < floors->count; i++)
        if (floors->groups[i].devices == devices && floors->groups[i].samples == samples)
            return floors->groups[i].floor;
    floors->groups = grow(floors->groups, floors->count, &floors->capacity, sizeof *floors->groups);
    struct group_floor *group = &floors->groups[floors->count++];
    *group = (struct group_floor){devices, samples,
                                  price_group(floors->splits->costs, block, devices, samples)};
    return group->floor;
}

struct run_floor run_floor_find(struct run_floors *floors, const struct single_device *alone,
                                int devices)
{
    int place = floors->splits->costs->model.place[alone->run_last];
    struct run_floor least = {INFINITY, INFINITY};
    int most = alone->samples < devices ? (int)alone->samples : devices;
    for (int by = most; by >= 1; by--) {
        int otherwise = devices / by;
        if (devices % by != 0 || !splits_may(floors->splits, place, otherwise))
            continue;
        int64_t samples = (alone->samples + by - 1) / by;
        double share = (double)samples / (double)alone->samples / otherwise;
        double both_s = alone->run_fixed_s + alone->run_shared_s * share,
               back_s = alone->run_back_fixed_s + alone->run_back_shared_s * share;
        bool messages = floors->messages && floors->splits->costs->narrow && !alone->unlike;
        if (both_s >= least.both_s && back_s >= least.back_s)
            continue; /* messages are not worth pricing */
        if (messages && otherwise > 1) {
            struct run_floor group = group_floor(floors, alone->run_last, otherwise, samples);
            both_s = fmax(both_s, group.both_s);
            back_s = fmax(back_s, group.back_s);
        }
        least.both_s = fmin(least.both_s, both_s);
        least.back_s = fmin(least.back_s, back_s);
    }
    return least;
}

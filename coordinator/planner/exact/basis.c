/* basis.c - each value is computed once: per micro-batch size, and per number of devices. */
#include "coordinator/planner/exact/basis.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>

void basis_init(struct basis *basis, struct costs *costs)
{
    *basis = (struct basis){.costs = costs};
    splits_init(&basis->splits, costs);
    basis->floors.splits = &basis->splits;
}

void basis_forget(struct basis *basis, bool messages)
{
    for (size_t i = 0; i < basis->count; i++)
        single_device_finish(&basis->items[i]);
    basis->count = 0;
    splits_finish(&basis->splits);
    run_floors_finish(&basis->floors);
    basis->floors.messages = messages;
}

void basis_finish(struct basis *basis)
{
    basis_forget(basis, false);
    free(basis->items);
    free(basis->memory_bytes);
    free(basis->once_s);
}

const struct single_device *basis_alone(struct basis *basis, int64_t samples)
{
    for (size_t i = 0; i < basis->count; i++)
        if (basis->items[i].samples == samples)
            return &basis->items[i];
    basis->items = grow(basis->items, basis->count, &basis->capacity, sizeof *basis->items);
    struct single_device *alone = &basis->items[basis->count++];
    single_device_init(alone, basis->costs, samples);
    basis->unlike = alone->unlike;
    return alone;
}

double basis_share(struct basis *basis, const struct single_device *alone, int devices)
{
    return single_device_share(alone, &basis->splits, basis->costs->model.place[alone->run_last],
                               devices);
}

struct run_floor basis_floor(struct basis *basis, const struct single_device *alone, int devices)
{
    struct run_floor *known = &alone->floors[devices - 1];
    if (known->both_s == 0)
        *known = run_floor_find(&basis->floors, alone, devices);
    return *known;
}

/* The least of any profile, on the first device that has it. */
double basis_once(struct basis *basis, int devices)
{
    const struct planner_request *request = basis->costs->request;
    const struct mesh alone = {0};
    struct part_cost base;
    if (!basis->once_s)
        basis->once_s = xcalloc((size_t)request->device_count, sizeof *basis->once_s);
    double *known = &basis->once_s[devices - 1];
    if (*known > 0)
        return *known;
    *known = INFINITY;
    for (int i = 0; i < devices; i++) {
        bool again = false;
        for (int j = 0; j < i && !again; j++)
            again = request->devices[j].profile == request->devices[i].profile;
        if (!again && costs_base(basis->costs, sites_add(&basis->costs->sites, i, &alone), devices,
                                 &base, NULL) == 0)
            *known = fmin(*known, base.least_once_s);
    }
    if (isinf(*known))
        *known = 0;
    return *known;
}

double basis_memory(struct basis *basis, int devices)
{
    const struct costs *costs = basis->costs;
    int count = costs->request->device_count;
    if (!basis->memory_bytes) {
        basis->memory_bytes = xcalloc((size_t)count + 1, sizeof *basis->memory_bytes);
        for (int i = 0; i < count; i++)
            basis->memory_bytes[i + 1] =
                basis->memory_bytes[i] + (double)planner_memory_limit(costs->request, i);
    }
    double scale = costs->sites.memory_scale > 0 ? costs->sites.memory_scale : 1;
    return scale * basis->memory_bytes[devices];
}

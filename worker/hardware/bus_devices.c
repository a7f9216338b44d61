/* bus_devices.c - devices on the bus in hwloc's tree, and the cores next to each. */
#include "worker/hardware/hardware.h"

#include "common/base/memory.h"
#include "worker/hardware/cores.h"

#include <errno.h>
#include <stdlib.h>

void hardware_found_finish(struct hardware_found *found)
{
    for (size_t i = 0; i < found->count; i++) {
        free(found->seen[i].id);
        free(found->seen[i].name);
        free(found->seen[i].place);
    }
    free(found->seen);
    free(found->reason);
    free(found->collectives);
    free(found->collectives_reason);
    *found = (struct hardware_found){0};
}

/* Those of the worker's cores that are next to a place on the bus; all of them if hwloc does not
 * know the place, or if none are there. The caller frees the set. */
static hwloc_cpuset_t cores_beside(hwloc_topology_t topology, hwloc_const_cpuset_t mine,
                                   const char *place)
{
    hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(topology, place);
    hwloc_obj_t holder = device ? hwloc_get_non_io_ancestor_obj(topology, device) : NULL;
    hwloc_cpuset_t beside = hwloc_bitmap_dup(mine);
    if (holder && hwloc_bitmap_intersects(mine, holder->cpuset))
        hwloc_bitmap_and(beside, mine, holder->cpuset);
    return beside;
}

/* How many of the first `count` sets equal this one. */
static unsigned count_same(hwloc_cpuset_t const *sets, size_t count, hwloc_const_cpuset_t set)
{
    unsigned same = 0;
    for (size_t i = 0; i < count; i++)
        same += hwloc_bitmap_isequal(sets[i], set) != 0;
    return same;
}

/* Device `index`'s share of the cores that it has in common with others. */
static int share_of(hwloc_topology_t topology, hwloc_cpuset_t const *beside, size_t count,
                    size_t index, hwloc_cpuset_t *out, struct error *err)
{
    unsigned sharers = count_same(beside, count, beside[index]);
    unsigned before = count_same(beside, index, beside[index]);
    hwloc_cpuset_t *shares = xcalloc(sharers, sizeof *shares);
    bool shared;
    int rc = cores_split(topology, beside[index], sharers, shares, &shared, err);
    for (unsigned i = 0; i < sharers && rc == 0; i++)
        if (i == before)
            *out = shares[i];
        else
            hwloc_bitmap_free(shares[i]);
    free(shares);
    return rc;
}

static int add(hwloc_topology_t topology, struct hardware_report *report,
               const struct hardware_seen *seen, hwloc_const_cpuset_t cores, struct error *err)
{
    char *cpuset = NULL;
    if (hwloc_bitmap_list_asprintf(&cpuset, cores) < 0)
        return error_set(err, -ENOMEM, "no memory for a list of cores");
    const struct hardware_device device = {
        .kind = HARDWARE_GPU,
        .name = seen->name,
        .id = seen->id,
        .place = seen->place,
        .cpuset = cpuset,
        .cores = cores_count(topology, cores),
    };
    hardware_report_add_device(report, &device);
    free(cpuset);
    return 0;
}

int hardware_add_found(hwloc_topology_t topology, struct hardware_report *report,
                       const struct hardware_found *found, struct error *err)
{
    hwloc_cpuset_t mine = hwloc_bitmap_alloc(), *beside = xcalloc(found->count, sizeof *beside);
    int rc = 0;
    hwloc_bitmap_list_sscanf(mine, report->cpuset);
    for (size_t i = 0; i < found->count; i++)
        beside[i] = cores_beside(topology, mine, found->seen[i].place);
    for (size_t i = 0; i < found->count && rc == 0; i++) {
        hwloc_cpuset_t share = NULL;
        rc = share_of(topology, beside, found->count, i, &share, err);
        if (rc < 0)
            break;
        rc = add(topology, report, &found->seen[i], share, err);
        hwloc_bitmap_free(share);
    }
    for (size_t i = 0; i < found->count; i++)
        hwloc_bitmap_free(beside[i]);
    free(beside);
    hwloc_bitmap_free(mine);
    return rc;
}

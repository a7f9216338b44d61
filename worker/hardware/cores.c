/* cores.c - groups cores by NUMA node, then cuts inside groups or between them; see cores.h. */
#include "worker/hardware/cores.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/memory.h"

struct core {
    hwloc_cpuset_t set; /* its processing units that may be used */
    int node;           /* its first NUMA node */
};

/* Neighbouring cores with the same NUMA node. */
struct group {
    unsigned first, count; /* indices of cores */
    unsigned pieces;
};

/* A machine that shows no cores, as some virtual ones do, is divided by processing units. */
static int core_depth(hwloc_topology_t topology)
{
    return hwloc_get_type_or_below_depth(topology, HWLOC_OBJ_CORE);
}

unsigned cores_count(hwloc_topology_t topology, hwloc_const_cpuset_t set)
{
    unsigned count = 0;
    hwloc_obj_t core = NULL;
    while ((core = hwloc_get_next_obj_by_depth(topology, core_depth(topology), core)))
        count += hwloc_bitmap_intersects(core->cpuset, set) ? 1 : 0;
    return count;
}

/* `out` has room for cores_count() cores; the caller frees their sets. */
static void list_cores(hwloc_topology_t topology, hwloc_const_cpuset_t within, struct core *out)
{
    hwloc_obj_t core = NULL;
    while ((core = hwloc_get_next_obj_by_depth(topology, core_depth(topology), core))) {
        if (!hwloc_bitmap_intersects(core->cpuset, within))
            continue;
        out->set = hwloc_bitmap_alloc();
        hwloc_bitmap_and(out->set, core->cpuset, within);
        out->node = hwloc_bitmap_first(core->nodeset);
        out++;
    }
}

/* `groups` has room for one per core; returns their number. */
static unsigned list_groups(const struct core *cores, unsigned core_count, struct group *groups)
{
    unsigned count = 0;
    for (unsigned i = 0; i < core_count; i++) {
        if (i == 0 || cores[i].node != cores[i - 1].node)
            groups[count++] = (struct group){.first = i};
        groups[count - 1].count++;
    }
    return count;
}

/* Give one piece to each group, and every further one to the group whose pieces are largest. */
static void deal_pieces(struct group *groups, unsigned group_count, unsigned pieces)
{
    for (unsigned i = 0; i < group_count; i++)
        groups[i].pieces = 1;
    for (unsigned dealt = group_count; dealt < pieces; dealt++) {
        struct group *largest = &groups[0];
        for (struct group *group = groups; group < groups + group_count; group++)
            if ((uint64_t)group->count * largest->pieces > (uint64_t)largest->count * group->pieces)
                largest = group;
        largest->pieces++;
    }
}

/* The union of cores [first, end). */
static hwloc_cpuset_t join(const struct core *cores, unsigned first, unsigned end)
{
    hwloc_cpuset_t set = hwloc_bitmap_alloc();
    for (unsigned i = first; i < end; i++)
        hwloc_bitmap_or(set, set, cores[i].set);
    return set;
}

static void cut_inside_groups(const struct core *cores, struct group *groups, unsigned group_count,
                              unsigned pieces, hwloc_cpuset_t *out)
{
    deal_pieces(groups, group_count, pieces);
    for (const struct group *group = groups; group < groups + group_count; group++)
        for (unsigned k = 0; k < group->pieces; k++)
            *out++ = join(cores, group->first + group->count * k / group->pieces,
                          group->first + group->count * (k + 1) / group->pieces);
}

static void cut_between_groups(const struct core *cores, const struct group *groups,
                               unsigned group_count, unsigned pieces, hwloc_cpuset_t *out)
{
    for (unsigned k = 0; k < pieces; k++) {
        const struct group *first = &groups[group_count * k / pieces];
        const struct group *last = &groups[group_count * (k + 1) / pieces - 1];
        out[k] = join(cores, first->first, last->first + last->count);
    }
}

int cores_split(hwloc_topology_t topology, hwloc_const_cpuset_t within, unsigned count,
                hwloc_cpuset_t *out, bool *shared, struct error *err)
{
    unsigned core_count = cores_count(topology, within);
    if (core_count == 0)
        return error_set(err, -EINVAL, "the cpuset has no core of this machine");
    struct core *cores = xcalloc(core_count, sizeof *cores);
    struct group *groups = xcalloc(core_count, sizeof *groups);
    list_cores(topology, within, cores);
    unsigned group_count = list_groups(cores, core_count, groups);

    *shared = count > core_count;
    if (*shared)
        for (unsigned k = 0; k < count; k++)
            out[k] = hwloc_bitmap_dup(cores[k % core_count].set);
    else if (count >= group_count)
        cut_inside_groups(cores, groups, group_count, count, out);
    else
        cut_between_groups(cores, groups, group_count, count, out);

    for (unsigned i = 0; i < core_count; i++)
        hwloc_bitmap_free(cores[i].set);
    free(groups);
    free(cores);
    return 0;
}

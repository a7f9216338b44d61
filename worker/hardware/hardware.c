/* hardware.c - from hwloc's topology to a report.
 *
 * The allowed cores are divided twice by the same routine: into the shares of the workers on this
 * host, of which one is ours, and that share into CPU devices. Memory follows the cores both times,
 * node by node and rounded down, so that what all workers report never exceeds what there is.
 * Devices on the bus, which an executor has found, get those of our cores that are next to them. */
#include "worker/hardware/hardware.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "worker/hardware/cores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hardware_topology_open(hwloc_topology_t *out, struct error *err)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) < 0)
        return error_set(err, -ENOMEM, "hwloc: cannot begin a topology");
    unsigned long flags =
        HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM | HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING;
    if (hwloc_topology_set_flags(topology, flags) < 0 ||
        hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) < 0 ||
        hwloc_topology_load(topology) < 0) {
        int rc = error_set(err, errno ? -errno : -EIO, "hwloc: cannot read this machine: %s",
                           strerror(errno));
        hwloc_topology_destroy(topology);
        return rc;
    }
    *out = topology;
    return 0;
}

int hardware_host(char **out, struct error *err)
{
    /* The boot id is preferred: images copy /etc/machine-id, and containers may have none. */
    char line[128];
    if ((file_line("/proc/sys/kernel/random/boot_id", line, sizeof line) < 0 || !line[0]) &&
        (file_line("/etc/machine-id", line, sizeof line) < 0 || !line[0]))
        return error_set(err, -ENOENT,
                         "this host has neither /proc/sys/kernel/random/boot_id nor "
                         "/etc/machine-id to be known by");
    *out = xstrdup(line);
    return 0;
}

/* bytes * part / whole, exact and rounded down; 0 if whole is 0. */
static uint64_t portion(uint64_t bytes, uint64_t part, uint64_t whole)
{
    return whole ? (uint64_t)((unsigned __int128)bytes * part / whole) : 0;
}

static unsigned cores_on(hwloc_topology_t topology, hwloc_const_cpuset_t set, hwloc_obj_t node)
{
    hwloc_cpuset_t both = hwloc_bitmap_alloc();
    hwloc_bitmap_and(both, set, node->cpuset);
    unsigned count = cores_count(topology, both);
    hwloc_bitmap_free(both);
    return count;
}

static unsigned cores_on_all(hwloc_topology_t topology, hwloc_cpuset_t const *sets, unsigned count,
                             hwloc_obj_t node)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += cores_on(topology, sets[i], node);
    return sum;
}

static void free_sets(hwloc_cpuset_t *sets, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        hwloc_bitmap_free(sets[i]);
    free(sets);
}

static char *list_text(hwloc_const_cpuset_t set)
{
    char *text = NULL;
    if (hwloc_bitmap_list_asprintf(&text, set) < 0)
        return xstrdup("");
    return text;
}

/* The cores that the options allow, before they are divided into shares. *out is new on success. */
static int allowed_cores(hwloc_topology_t topology, const char *cpuset, hwloc_cpuset_t *out,
                         struct error *err)
{
    hwloc_const_cpuset_t machine = hwloc_topology_get_allowed_cpuset(topology);
    hwloc_cpuset_t set = hwloc_bitmap_dup(machine);
    int rc = 0;
    if (cpuset && hwloc_bitmap_list_sscanf(set, cpuset) < 0)
        rc = error_set(err, -EINVAL, "cpuset '%s' is not a list of cores such as '0-3,8'", cpuset);
    if (rc == 0 && (hwloc_bitmap_iszero(set) || !hwloc_bitmap_isincluded(set, machine))) {
        char *allowed = list_text(machine);
        rc = error_set(err, -EINVAL, "cpuset '%s' is not within '%s', which this process may use",
                       cpuset ? cpuset : "", allowed);
        free(allowed);
    }
    if (rc < 0) {
        hwloc_bitmap_free(set);
        return rc;
    }
    *out = set;
    return 0;
}

int hardware_check_cpuset(hwloc_topology_t topology, const char *cpuset, struct error *err)
{
    hwloc_cpuset_t cores;
    int rc = allowed_cores(topology, cpuset, &cores, err);
    if (rc == 0)
        hwloc_bitmap_free(cores);
    return rc;
}

/* Divide the cores: *shares is a new array of share_count sets (one if that is 0). */
static int cut_shares(hwloc_topology_t topology, const struct hardware_options *options,
                      hwloc_cpuset_t **shares, unsigned *count, bool *shared, struct error *err)
{
    hwloc_cpuset_t base;
    *count = options->share_count ? options->share_count : 1;
    if (options->share_index >= *count)
        return error_set(err, -EINVAL, "share %u of %u: shares are counted from 0 to %u",
                         options->share_index, *count, *count - 1);
    int rc = allowed_cores(topology, options->cpuset, &base, err);
    if (rc < 0)
        return rc;
    *shares = xcalloc(*count, sizeof **shares);
    rc = cores_split(topology, base, *count, *shares, shared, err);
    if (rc < 0)
        free_sets(*shares, *count);
    hwloc_bitmap_free(base);
    return rc;
}

double hardware_crowd(hwloc_topology_t topology, const struct hardware_options *options)
{
    struct error ignored;
    hwloc_cpuset_t base;
    if (allowed_cores(topology, options->cpuset, &base, &ignored) < 0)
        return 1;
    double cores = cores_count(topology, base), shares = options->share_count;
    double own = shares > 1 ? cores / shares : cores;
    double crowd = own < 1 ? 1 / own : 1;
    own = own < 1 ? 1 : own;
    hwloc_bitmap_free(base);
    return options->devices > own ? crowd * options->devices / own : crowd;
}

/* The memory of all nodes; *usable is that, or the limit if it is lower. */
static uint64_t machine_memory(hwloc_topology_t topology, uint64_t limit, uint64_t *usable)
{
    uint64_t total = 0;
    hwloc_obj_t node = NULL;
    while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)))
        total += node->attr->numanode.local_memory;
    *usable = limit && limit < total ? limit : total;
    return total;
}

/* Add the NUMA nodes of the share, with the memory that goes with its cores. Of each node, an
 * explicit cpuset gets the part that its cores are of all the node's cores. Shares divide that
 * among themselves; a core that k workers use counts k times. */
static void fill_memory(struct hardware_report *report, hwloc_topology_t topology,
                        hwloc_cpuset_t const *shares, unsigned count,
                        const struct hardware_options *options)
{
    unsigned mine = options->share_index;
    uint64_t usable, total = machine_memory(topology, options->limit_bytes, &usable);
    hwloc_cpuset_t base = hwloc_bitmap_alloc();
    for (unsigned i = 0; i < count; i++)
        hwloc_bitmap_or(base, base, shares[i]);
    hwloc_obj_t node = NULL;
    while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node))) {
        unsigned cores = cores_on(topology, shares[mine], node);
        if (cores == 0)
            continue;
        uint64_t bytes = portion(node->attr->numanode.local_memory, usable, total);
        bytes = portion(bytes, cores_on(topology, base, node), cores_count(topology, node->cpuset));
        bytes = portion(bytes, cores, cores_on_all(topology, shares, count, node));
        report->memory_bytes += bytes;
        hardware_report_add_numa(
            report,
            (struct hardware_numa){.index = node->os_index, .cores = cores, .memory_bytes = bytes});
    }
    hwloc_bitmap_free(base);
}

/* Lower the memory to what the options allow, in the same proportions. */
static int limit_memory(struct hardware_report *report, uint64_t limit, struct error *err)
{
    if (limit == 0 || limit == report->memory_bytes)
        return 0;
    if (limit > report->memory_bytes) {
        char wanted[32], there[32];
        return error_set(err, -EINVAL,
                         "memory: %s is more than the %s that go with these cores, or that "
                         "their control group may have",
                         units_print_bytes(wanted, sizeof wanted, (double)limit),
                         units_print_bytes(there, sizeof there, (double)report->memory_bytes));
    }
    for (size_t i = 0; i < report->numa_count; i++)
        report->numa[i].memory_bytes =
            portion(report->numa[i].memory_bytes, limit, report->memory_bytes);
    report->memory_bytes = limit;
    return 0;
}

static void fill_caches(struct hardware_report *report, hwloc_topology_t topology,
                        hwloc_const_cpuset_t mine)
{
    for (unsigned level = 1; level <= 5; level++) {
        int depth = hwloc_get_cache_type_depth(topology, level, HWLOC_OBJ_CACHE_DATA);
        if (depth == HWLOC_TYPE_DEPTH_UNKNOWN || depth == HWLOC_TYPE_DEPTH_MULTIPLE)
            continue;
        struct hardware_cache cache = {.level = level};
        hwloc_obj_t object = NULL;
        while ((object = hwloc_get_next_obj_by_depth(topology, depth, object))) {
            if (!hwloc_bitmap_intersects(object->cpuset, mine))
                continue;
            cache.size_bytes = object->attr->cache.size;
            cache.count++;
        }
        if (cache.count)
            hardware_report_add_cache(report, cache);
    }
}

/* The memory of device k: of every node, the part that its cores are of all devices' cores
 * there. */
static uint64_t device_memory(const struct hardware_report *report, hwloc_topology_t topology,
                              hwloc_cpuset_t const *sets, unsigned count, unsigned k)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < report->numa_count; i++) {
        hwloc_obj_t node = hwloc_get_numanode_obj_by_os_index(topology, report->numa[i].index);
        bytes += portion(report->numa[i].memory_bytes, cores_on(topology, sets[k], node),
                         cores_on_all(topology, sets, count, node));
    }
    return bytes;
}

static int fill_devices(struct hardware_report *report, hwloc_topology_t topology,
                        hwloc_const_cpuset_t mine, unsigned count, struct error *err)
{
    if (count == 0)
        return 0;
    if (count > HARDWARE_PIECES_MAX)
        return error_set(err, -EINVAL, "devices: %u is too many, cores are cut into at most %d",
                         count, HARDWARE_PIECES_MAX);
    bool shared = false;
    hwloc_cpuset_t *sets = xcalloc(count, sizeof(*sets));
    int rc = cores_split(topology, mine, count, sets, &shared, err);
    for (unsigned k = 0; rc == 0 && k < count; k++) {
        char *cpuset = list_text(sets[k]);
        struct hardware_device device = {
            .kind = HARDWARE_CPU,
            .name = report->processor,
            .cpuset = cpuset,
            .cores = cores_count(topology, sets[k]),
            .memory_bytes = device_memory(report, topology, sets, count, k),
        };
        hardware_report_add_device(report, &device);
        free(cpuset);
    }
    report->oversubscribed = report->oversubscribed || (rc == 0 && shared);
    free_sets(sets, count);
    return rc;
}

static const char *processor_name(hwloc_topology_t topology)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *name = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    return name ? name : "CPU";
}

int hardware_detect(hwloc_topology_t topology, const struct hardware_options *options,
                    struct hardware_report **out, struct error *err)
{
    hwloc_cpuset_t *shares = NULL;
    unsigned count = 0;
    bool shared = false;
    int rc = cut_shares(topology, options, &shares, &count, &shared, err);
    if (rc < 0)
        return rc;
    hwloc_const_cpuset_t mine = shares[options->share_index];
    char *cpuset = list_text(mine);
    struct hardware_report *report =
        hardware_report_create(options->node, options->host, processor_name(topology), cpuset);
    free(cpuset);
    report->cores = cores_count(topology, mine);
    report->oversubscribed = shared;
    fill_memory(report, topology, shares, count, options);
    fill_caches(report, topology, mine);
    rc = limit_memory(report, options->memory_bytes, err);
    if (rc == 0)
        rc = fill_devices(report, topology, mine, options->devices, err);
    if (rc == 0 && options->devices)
        rc = hardware_report_check(report, err);
    free_sets(shares, count);
    if (rc < 0) {
        hardware_report_destroy(report);
        return rc;
    }
    *out = report;
    return 0;
}

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
static int cores_of(hwloc_topology_t topology, hwloc_cpuset_t const *beside, size_t count,
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

static int add_device(hwloc_topology_t topology, struct hardware_report *report,
                      const struct hardware_seen *seen, hwloc_const_cpuset_t cores,
                      struct error *err)
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
        rc = cores_of(topology, beside, found->count, i, &share, err);
        if (rc < 0)
            break;
        rc = add_device(topology, report, &found->seen[i], share, err);
        hwloc_bitmap_free(share);
    }
    for (size_t i = 0; i < found->count; i++)
        hwloc_bitmap_free(beside[i]);
    free(beside);
    hwloc_bitmap_free(mine);
    return rc;
}

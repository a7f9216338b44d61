/* machine.c - the live machine: its topology and its identity. */
#include "worker/hardware/hardware.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/memory.h"

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

/* Read the first line of a file; false: there is none, or it is empty. */
static bool read_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool read = fgets(line, size, file) != NULL;
    fclose(file);
    if (read)
        line[strcspn(line, "\n")] = '\0';
    return read && line[0];
}

int hardware_host(char **out, struct error *err)
{
    /* The boot id is preferred: images copy /etc/machine-id, and containers may have none. */
    char line[128];
    if (!read_line("/proc/sys/kernel/random/boot_id", line, sizeof line) &&
        !read_line("/etc/machine-id", line, sizeof line))
        return error_set(err, -ENOENT,
                         "this host has neither /proc/sys/kernel/random/boot_id nor "
                         "/etc/machine-id to be known by");
    *out = xstrdup(line);
    return 0;
}

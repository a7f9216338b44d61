/* memory.c - whether the offered memory exists: a rank reserves what its plan says, up to what was
 * offered. */
#include "worker/doctor/machine.h"

#include "common/base/units.h"

#include <stdlib.h>

#define SPARE_SHARE 0.9 /* of what is offered; the worker and the system use the rest */

static bool look_at_commit(const struct machine *machine, struct findings *out)
{
    char mode[16], room[32], offered[32];
    uint64_t limit, there, bytes = machine->report->memory_bytes;
    if (!machine_read(machine->proc, "sys/vm/overcommit_memory", mode, sizeof mode) ||
        atoi(mode) != 2 || !machine_memory(machine, "CommitLimit:", &limit) ||
        !machine_memory(machine, "Committed_AS:", &there))
        return true;
    uint64_t left = limit > there ? limit - there : 0;
    if (left >= bytes)
        return true;
    finding_warn(
        out, "'sysctl vm.overcommit_memory=0', or --memory SIZE",
        "vm.overcommit_memory is 2, and only %s may still be allocated, but %s are offered: "
        "plans that need more fail at the start",
        units_print_bytes(room, sizeof room, (double)left),
        units_print_bytes(offered, sizeof offered, (double)bytes));
    return false;
}

static void look(void *scene, struct findings *out)
{
    const struct machine *machine = scene;
    char offered[32], room[32], whole[32];
    uint64_t available = 0, total = 0;
    if (!machine->report)
        return;
    bool well = look_at_commit(machine, out);
    uint64_t bytes = machine->report->memory_bytes;
    bool known = machine_memory(machine, "MemAvailable:", &available) &&
                 machine_memory(machine, "MemTotal:", &total);
    units_print_bytes(offered, sizeof offered, (double)bytes);
    units_print_bytes(room, sizeof room, (double)available);
    units_print_bytes(whole, sizeof whole, (double)total);
    if (known && !machine->works && (double)available < SPARE_SHARE * (double)bytes)
        finding_warn(out, "end what uses the rest, or offer less: --memory SIZE",
                     "%s are offered, but only %s of the machine's %s are free: a rank that takes "
                     "what was offered is killed",
                     offered, room, whole);
    else if (well && known)
        finding_ok(out, "%s are offered of the machine's %s, of which %s are free", offered, whole,
                   room);
    else if (well)
        finding_ok(out, "%s are offered", offered);
}

const struct doctor_check check_memory = {
    .name = "memory",
    .about = "whether the offered memory is really available",
    .cb = look,
};

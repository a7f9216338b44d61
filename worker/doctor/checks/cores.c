/* cores.c - whether all offered cores are available, at the same time. */
#include "worker/doctor/machine.h"

#include "worker/hardware/cgroup.h"

static void look(void *scene, struct findings *out)
{
    const struct machine *machine = scene;
    const struct hardware_report *report = machine->report;
    struct error err;
    double processors;
    if (cgroup_processors(machine->cgroups, machine->cgroup_self, &processors, &err) < 0) {
        finding_warn(out, "a control group whose limits can be read", "%s", err.text);
        return;
    }
    if (!report)
        return;
    if (processors < report->cores)
        finding_warn(
            out,
            "as many cores as the quota has time for, by --cpuset or the group's cpuset; on "
            "Kubernetes whole CPUs, limits equal to requests, and the CPU manager's "
            "static policy",
            "%u cores are offered, but the control group may only use the time of %g: ranks "
            "would be halted in every step",
            report->cores, processors);
    else if (report->oversubscribed)
        finding_warn(out, "no more devices (--devices) and shares (--share) than cores",
                     "%zu devices are made of %u core%s that others use, too: they wait for each "
                     "other in every step",
                     report->device_count, report->cores, report->cores == 1 ? "" : "s");
    else
        finding_ok(out, "%u core%s, each for one device", report->cores,
                   report->cores == 1 ? "" : "s");
}

const struct doctor_check check_cores = {
    .name = "cores",
    .about = "whether the offered cores are really available",
    .cb = look,
};

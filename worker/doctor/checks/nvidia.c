/* nvidia.c - if there is a driver: why no devices are found, or by what they exchange data. */
#include "worker/doctor/machine.h"

#include "common/base/units.h"
#include "worker/daemon/probe.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#define MODULE "cuda"
#define SHARED_BYTES                                                                               \
    ((double)(1 << 30)) /* NCCL's guide: --shm-size=1g, where containers have 64m */

/* Find "560.35.03" in "NVRM version: NVIDIA UNIX x86_64 Kernel Module 560.35.03 Fri ..."; false if
 * there is no driver. */
static bool find_driver(const struct machine *machine, char out[64])
{
    char text[512], *rest = NULL;
    snprintf(out, 64, "of an unknown release");
    if (!machine_read(machine->proc, "driver/nvidia/version", text, sizeof text))
        return false;
    for (char *word = strtok_r(text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest))
        if (strchr(word, '.') && word[strspn(word, "0123456789.")] == '\0') {
            snprintf(out, 64, "%s", word);
            break;
        }
    return true;
}

static void look_at_shared_memory(const struct machine *machine, struct findings *out)
{
    char path[256], there[32];
    struct statvfs fs;
    snprintf(path, sizeof path, "%s/shm", machine->dev);
    double bytes = statvfs(path, &fs) == 0 ? (double)fs.f_blocks * (double)fs.f_frsize : 0;
    if (bytes < SHARED_BYTES)
        finding_warn(out, "--shm-size=1g of a container; in the chart the pool's shm",
                     "%s has %s: NCCL, which exchanges data between devices of a machine, fails "
                     "when it is full",
                     path, units_print_bytes(there, sizeof there, bytes));
}

static void tell(const struct machine *machine, const struct hardware_found *found,
                 const char *driver, struct findings *out)
{
    if (*found->collectives_reason)
        finding_warn(out,
                     "install the library and Gimbal's module for it; GIMBAL_MODULES may name the "
                     "folder of the module",
                     "%zu found, but they would exchange data through the host's memory: %s",
                     found->count, found->collectives_reason);
    else
        finding_ok(out, "%zu found, driver %s, data is exchanged through %s", found->count, driver,
                   *found->collectives ? found->collectives : "the host's memory");
    if (found->count > 1)
        look_at_shared_memory(machine, out);
}

static void look(void *scene, struct findings *out)
{
    const struct machine *machine = scene;
    struct hardware_found found = {0};
    struct error err;
    char driver[64];
    bool driven = find_driver(machine, driver);
    if (!machine->report || machine->settings->pieces || (!driven && !machine_accelerates(machine)))
        return;
    const struct prober prober = {.shim = machine->shim,
                                  .program = machine->executor,
                                  .cpuset = machine->report->cpuset,
                                  .devices = 1,
                                  .stop_fd = machine->stop_fd};
    if (probe_find(&prober, MODULE, &found, &err) < 0)
        finding_block(out, "an executor that starts", "%s", err.text);
    else if (found.count > 0)
        tell(machine, &found, driver, out);
    else
        finding_warn(out,
                     "a build with CUDA, whose module and libraries can be loaded, and a driver as "
                     "new as they are; a container that has the devices; or --devices 1",
                     "driver %s is here, but no device is found: %s; only the cores are offered",
                     driver, found.reason);
    hardware_found_finish(&found);
}

const struct doctor_check check_nvidia = {
    .name = "nvidia",
    .about = "the devices of the NVIDIA driver",
    .cb = look,
};

/* devices.c - checks of the devices, as the worker itself finds them: by an executor. */
#include "worker/doctor/examination.h"

#include "common/base/units.h"
#include "worker/node/offer.h"
#include "worker/node/survey.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* What the worker would offer, found in the same way as the worker does. */
static void examine_devices(void *scene, struct findings *out)
{
    struct examination *examination = scene;
    struct error err;
    char memory[32];
    if (access(examination->shim, X_OK) < 0) {
        finding_block(out, "install it beside gimbal-worker", "%s: %s", examination->shim,
                      strerror(errno));
        return;
    }
    if (offer_look(examination->settings, examination->shim, examination->executor,
                   examination->stop_fd, &examination->report, &err) < 0) {
        finding_block(out,
                      "settings that fit this machine; try them with 'gimbal-worker --dry-run'",
                      "%s", err.text);
        return;
    }
    const struct hardware_report *report = examination->report;
    finding_ok(out, "%zu device%s, %s%s, on %u core%s (%s) with %s", report->device_count,
               report->device_count == 1 ? "" : "s", report->device_count == 1 ? "" : "the first ",
               report->devices[0].name, report->cores, report->cores == 1 ? "" : "s",
               report->cpuset,
               units_print_bytes(memory, sizeof memory, (double)report->memory_bytes));
}

const struct doctor_check check_devices = {"devices", "what the worker would offer",
                                           examine_devices};

/* nvidia: if there is a driver, why no devices are found, or by what they exchange data. */
#define MODULE "cuda"
#define SHARED_BYTES                                                                               \
    ((double)(1 << 30)) /* NCCL's guide: --shm-size=1g, where containers have 64m */

/* Find "560.35.03" in "NVRM version: NVIDIA UNIX x86_64 Kernel Module 560.35.03 Fri ..."; false if
 * there is no driver. */
static bool find_driver(const struct examination *examination, char out[64])
{
    char text[512], *rest = NULL;
    snprintf(out, 64, "of an unknown release");
    if (!examination_read(examination->proc, "driver/nvidia/version", text, sizeof text))
        return false;
    for (char *word = strtok_r(text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest))
        if (strchr(word, '.') && word[strspn(word, "0123456789.")] == '\0') {
            snprintf(out, 64, "%s", word);
            break;
        }
    return true;
}

static void look_at_shared_memory(const struct examination *examination, struct findings *out)
{
    char path[256], there[32];
    struct statvfs fs;
    snprintf(path, sizeof path, "%s/shm", examination->dev);
    double bytes = statvfs(path, &fs) == 0 ? (double)fs.f_blocks * (double)fs.f_frsize : 0;
    if (bytes < SHARED_BYTES)
        finding_warn(out, "--shm-size=1g of a container; in the chart the pool's shm",
                     "%s has %s: NCCL, which exchanges data between devices of a machine, fails "
                     "when it is full",
                     path, units_print_bytes(there, sizeof there, bytes));
}

static void report_nvidia(const struct examination *examination, const struct hardware_found *found,
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
        look_at_shared_memory(examination, out);
}

static void examine_nvidia(void *scene, struct findings *out)
{
    const struct examination *examination = scene;
    struct hardware_found found = {0};
    struct error err;
    char driver[64];
    bool driven = find_driver(examination, driver);
    if (!examination->report || examination->settings->pieces ||
        (!driven && !examination_accelerates(examination)))
        return;
    const struct survey survey = {.shim = examination->shim,
                                  .program = examination->executor,
                                  .cpuset = examination->report->cpuset,
                                  .devices = 1,
                                  .stop_fd = examination->stop_fd};
    if (survey_find(&survey, MODULE, &found, &err) < 0)
        finding_block(out, "an executor that starts", "%s", err.text);
    else if (found.count > 0)
        report_nvidia(examination, &found, driver, out);
    else
        finding_warn(out,
                     "a build with CUDA, whose module and libraries can be loaded, and a driver as "
                     "new as they are; a container that has the devices; or --devices 1",
                     "driver %s is here, but no device is found: %s; only the cores are offered",
                     driver, found.reason);
    hardware_found_finish(&found);
}

const struct doctor_check check_nvidia = {"nvidia", "the devices of the NVIDIA driver",
                                          examine_nvidia};

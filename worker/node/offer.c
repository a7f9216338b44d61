/* offer.c - cores from hwloc, other devices from an executor that looks for them. */
#include "worker/node/offer.h"

#include "common/base/log.h"
#include "common/base/units.h"
#include "common/rpc/address.h"
#include "worker/hardware/cgroup.h"
#include "worker/hardware/hardware.h"
#include "worker/hardware/network.h"
#include "worker/kernels/devices.h"
#include "worker/node/survey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NVIDIA_DRIVER "/proc/driver/nvidia/version" /* there with the driver */

/* Where their number is unknown, plans take each device to have a card of its own. */
static void offer_count_cards(struct hardware_report *report)
{
    struct error err;
    if (network_cards_here(report->address, &report->network_cards, &err) < 0)
        log_line(LOG_WARN, "network cards are not counted: %s", err.text);
}

int offer_source(const char *coordinator, char out[NETWORK_ADDRESS_SIZE], struct error *err)
{
    struct rpc_address address;
    int rc = rpc_address_parse(coordinator, &address, err);
    return rc < 0 ? rc : network_source(address.host, address.port, out, err);
}

int offer_address(const struct worker_settings *settings, struct hardware_report *report,
                  struct error *err)
{
    char address[NETWORK_ADDRESS_SIZE];
    int rc = settings->host_address ? network_listens(settings->host_address, err)
                                    : offer_source(settings->coordinator, address, err);
    if (rc < 0)
        return rc;
    hardware_set_text(&report->address, settings->host_address ? settings->host_address : address);
    offer_count_cards(report);
    return 0;
}

/* Look for devices beside the cores, and append them to a report that has none. */
static int offer_add_found(hwloc_topology_t topology, const struct worker_settings *settings,
                           struct survey *survey, struct hardware_report *report, struct error *err)
{
    struct hardware_found found;
    survey->cpuset = report->cpuset;
    int rc = survey_find(survey, settings->devices, &found, err);
    if (rc < 0)
        return rc == -EINTR ? rc : -ENODEV;
    if (found.count == 0 && settings->devices)
        rc = error_set(err, -ENODEV, "devices: there is no '%s' here: %s", settings->devices,
                       found.reason);
    else if (found.count == 0)
        log_line(LOG_INFO, "only the cores are devices: %s",
                 access(NVIDIA_DRIVER, F_OK) == 0 ? found.reason : "this machine has no others");
    else
        rc = hardware_add_found(topology, report, &found, err);
    hardware_found_finish(&found);
    return rc;
}

/* The cores are the device if no others were found and none were asked for. */
static int offer_make_from(hwloc_topology_t topology, const char *host,
                           const struct worker_settings *settings, struct survey *survey,
                           struct hardware_report **out, struct error *err)
{
    struct hardware_options options = {
        .node = settings->name,
        .host = host,
        .cpuset = settings->cpuset,
        .share_index = settings->share_index,
        .share_count = settings->share_count,
        .devices = settings->pieces,
        .memory_bytes = settings->memory,
    };
    int rc = cgroup_memory_limit(CGROUPS, CGROUP_SELF, &options.limit_bytes, err);
    if (rc == 0)
        rc = hardware_detect(topology, &options, out, err);
    if (rc == 0 && !settings->pieces)
        rc = offer_add_found(topology, settings, survey, *out, err);
    if (rc == 0 && (*out)->device_count == 0) {
        hardware_report_destroy(*out);
        *out = NULL;
        options.devices = 1;
        rc = hardware_detect(topology, &options, out, err);
    }
    survey->crowd = hardware_crowd(topology, &options);
    return rc;
}

static int find_executor(const char *executor, struct error *err)
{
    return access(executor, X_OK) == 0
               ? 0
               : error_set(err, -ENODEV, "executor: %s: %s", executor, strerror(errno));
}

/* Everything but the address and what only measuring shows. */
static int offer_detect(const struct worker_settings *settings, struct survey *survey,
                        struct hardware_report **out, struct error *err)
{
    struct hardware_report *report = NULL;
    hwloc_topology_t topology;
    char *host = NULL;
    int rc = find_executor(survey->program, err);
    if (rc == 0)
        rc = hardware_topology_open(&topology, err);
    if (rc < 0)
        return rc;
    rc = hardware_host(&host, err);
    if (rc == 0)
        rc = offer_make_from(topology, host, settings, survey, &report, err);
    hwloc_topology_destroy(topology);
    free(host);
    if (rc != 0) {
        hardware_report_destroy(report);
        return rc;
    }
    hardware_set_text(&report->release, GIMBAL_RELEASE);
    *out = report;
    return 0;
}

static void offer_log(const struct hardware_report *report, const char *what_next)
{
    char memory[32];
    log_line(LOG_INFO, "%s: %zu device%s, %u core%s (%s), %s, at %s%s", report->node,
             report->device_count, report->device_count == 1 ? "" : "s", report->cores,
             report->cores == 1 ? "" : "s", report->cpuset,
             units_print_bytes(memory, sizeof memory, (double)report->memory_bytes),
             report->address, what_next);
}

static int check_cpuset(const char *cpuset, struct error *err)
{
    hwloc_topology_t topology;
    if (!cpuset)
        return 0;
    int rc = hardware_topology_open(&topology, err);
    if (rc < 0)
        return rc;
    rc = hardware_check_cpuset(topology, cpuset, err);
    hwloc_topology_destroy(topology);
    return rc;
}

static int check_kind(const struct worker_settings *settings, struct error *err)
{
    char known[64] = "";
    int used = 0;
    if (!settings->devices || settings->pieces)
        return 0;
    for (int i = 0; device_modules[i]; i++) {
        if (strcmp(device_modules[i], settings->devices) == 0)
            return 0;
        used += snprintf(known + used, sizeof known - (size_t)used, i ? ", %s" : "%s",
                         device_modules[i]);
    }
    return error_set(err, -EINVAL, "devices: '%s' is no kind of device; known: %s, or a number",
                     settings->devices, known);
}

int offer_check_settings(const struct worker_settings *settings, struct error *err)
{
    int rc = check_kind(settings, err);
    return rc < 0 ? rc : check_cpuset(settings->cpuset, err);
}

int offer_look(const struct worker_settings *settings, const char *shim, const char *executor,
               int stop_fd, struct hardware_report **out, struct error *err)
{
    struct survey survey = {.shim = shim, .program = executor, .devices = 1, .stop_fd = stop_fd};
    return offer_detect(settings, &survey, out, err);
}

int offer_check(const struct worker_settings *settings, const char *shim, const char *executor,
                int stop_fd, struct error *err)
{
    struct hardware_report *report = NULL;
    int rc = offer_look(settings, shim, executor, stop_fd, &report, err);
    if (rc == 0)
        rc = offer_address(settings, report, err);
    if (rc == 0)
        offer_log(report, "; nothing is measured");
    hardware_report_destroy(report);
    return rc;
}

int offer_make(const struct worker_settings *settings, const char *shim, const char *executor,
               int stop_fd, struct hardware_report **out, struct error *err)
{
    struct survey survey = {.shim = shim, .program = executor, .devices = 1, .stop_fd = stop_fd};
    struct hardware_report *report = NULL;
    int rc = offer_detect(settings, &survey, &report, err);
    if (rc == 0)
        rc = offer_address(settings, report, err);
    if (rc == 0) {
        offer_log(report, "; measuring");
        survey.cpuset = report->cpuset;
        survey.devices = report->device_count;
        survey.cache = settings->profile_cache;
        survey.measure = settings->measure;
        rc = survey_measure(&survey, report, err);
        rc = rc < 0 && rc != -EINTR ? -ENODEV : rc;
    }
    if (rc == 0)
        rc = hardware_report_check(report, err);
    if (rc < 0) {
        hardware_report_destroy(report);
        return rc;
    }
    *out = report;
    return 0;
}

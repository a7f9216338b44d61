/* main.c - gimbal-worker: the daemon of a node. Finds out what the node has, has an executor
 * measure it, and works for the coordinator until it is told to stop. */
#include "common/base/log.h"
#include "common/base/memory.h"
#include "worker/supervisor/daemon.h"
#include "worker/supervisor/hardware.h"
#include "worker/supervisor/probe.h"
#include "worker/supervisor/settings.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define STATUS_UNAVAILABLE 69
#define STATUS_INTERNAL 70
#define STATUS_CONFIGURATION 78

/* The path of a program beside this one; yours to free. */
static char *beside(const char *program)
{
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    path[size > 0 ? size : 0] = '\0';
    char *slash = strrchr(path, '/');
    return xasprintf("%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, program);
}

/* Beside this program where both are installed; a build tree has it in another folder. */
static char *find_executor(void)
{
    char *installed = beside("gimbal-executor"), *built = beside("../executor/gimbal-executor");
    bool here = access(installed, X_OK) == 0 || access(built, X_OK) < 0;
    free(here ? built : installed);
    return here ? installed : built;
}

/* SIGTERM and SIGINT come by a descriptor; threads that start later leave them alone. */
static int open_signals(struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? error_set(err, -errno, "signalfd: %s", strerror(errno)) : fd;
}

static int detect(const struct worker_settings *settings, struct hardware_report **out,
                  double *crowd, struct error *err)
{
    hwloc_topology_t topology;
    char *host = NULL;
    int rc = hardware_topology_open(&topology, err);
    if (rc < 0)
        return rc;
    rc = hardware_host(&host, err);
    if (rc == 0) {
        struct hardware_options options = {
            .node = settings->name,
            .host = host,
            .cpuset = settings->cpuset,
            .share_index = settings->share_index,
            .share_count = settings->share_count,
            .devices = (unsigned)settings->devices,
            .memory_bytes = settings->memory,
        };
        rc = hardware_detect(topology, &options, out, err);
        *crowd = hardware_crowd(topology, &options);
    }
    hwloc_topology_destroy(topology);
    free(host);
    return rc;
}

static int fail(int status, const struct error *err)
{
    log_line(LOG_ERROR, "%s", err->text);
    return status;
}

static int run(const struct worker_settings *settings, const char *shim, const char *executor)
{
    struct error err;
    struct hardware_report *report = NULL;
    int signal_fd = open_signals(&err);
    if (signal_fd < 0)
        return fail(STATUS_INTERNAL, &err);
    double crowd = 1;
    int status = detect(settings, &report, &crowd, &err);
    if (status < 0)
        return fail(status == -EINVAL ? STATUS_CONFIGURATION : STATUS_INTERNAL, &err);

    assert(report);
    log_line(LOG_INFO, "%s: %zu devices, %u cores (%s), measuring them", report->node,
             report->device_count, report->cores, report->cpuset);
    status = probe_devices(shim, executor, crowd, report, &err);
    if (status < 0) {
        status = fail(STATUS_UNAVAILABLE, &err);
    } else {
        struct daemon_options options = {
            .report = report,
            .coordinator = settings->coordinator,
            .shim = shim,
            .executor = executor,
            .signal_fd = signal_fd,
        };
        status = daemon_run(&options, &err);
        if (status < 0)
            status = fail(status == -EINVAL ? STATUS_CONFIGURATION : STATUS_INTERNAL, &err);
    }
    hardware_report_destroy(report);
    close(signal_fd);
    return status;
}

int main(int argc, char **argv)
{
    struct worker_settings values;
    struct settings *settings;
    struct error err;
    log_open("worker", LOG_INFO);
    int status = worker_settings_read(argc, argv, &values, &settings, &err);
    if (status != 0)
        return fail(status, &err);
    log_open("worker", (enum log_level)values.log_level);
    char *shim = beside("gimbal-shim");
    char *executor = values.executor ? xstrdup(values.executor) : find_executor();
    status = run(&values, shim, executor);
    free(executor);
    free(shim);
    settings_destroy(settings);
    return status;
}

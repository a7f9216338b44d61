/* main.c - gimbal-worker, the daemon of a node: finds out what the node has, lets executors measure
 * it, and works for the coordinator until it is told to stop. */
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/notify.h"
#include "common/base/process.h"
#include "common/base/text.h"
#include "worker/daemon/daemon.h"
#include "worker/doctor/examination.h"
#include "worker/node/credentials.h"
#include "worker/node/offer.h"
#include "worker/node/settings.h"
#include "worker/node/state_folder.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

/* The path of a program in this program's folder; the caller frees it. */
static char *beside(const char *program)
{
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    path[size > 0 ? size : 0] = '\0';
    char *slash = strrchr(path, '/');
    return xasprintf("%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, program);
}

/* SIGTERM and SIGINT arrive at a descriptor; threads that are started later inherit the blocked
 * mask. */
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

static int fail_with(int status, const struct error *err)
{
    log_line(LOG_ERROR, "%s", err->text);
    return status;
}

/* It was told to stop before it had begun: that is no failure. */
static int leave_early(const struct error *err)
{
    log_line(LOG_INFO, "%s", err->text);
    return EXIT_SUCCESS;
}

static int work_as_node(const struct daemon_options *options, int signal_fd, struct notify *notify,
                        struct error *err)
{
    struct daemon *daemon = NULL;
    int status = daemon_open(options, &daemon, err);
    if (status == 0)
        status = daemons_run(&daemon, 1, signal_fd, notify);
    daemon_close(daemon);
    return status;
}

/* Many nodes in one process, to see how many a coordinator can handle: copies of one report, a
 * daemon for each with its own supervisor, client, heartbeats and watch, and one loop for all. None
 * has executors: every assignment ends with a report that says so. */
struct fleet {
    struct hardware_report **reports;
    struct daemon **daemons;
    size_t count;
};

static int fleet_add(struct fleet *fleet, const struct daemon_options *model, struct error *err)
{
    struct hardware_report *report = hardware_report_copy(model->report);
    struct daemon_options options = {.report = report,
                                     .coordinator = model->coordinator,
                                     .credentials = model->credentials,
                                     .state = model->state};
    size_t index = fleet->count++;
    free(report->node);
    report->node = xasprintf("%s-%04zu", model->report->node, index + 1);
    free(report->host); /* each is a machine of its own, and shares cores with nobody */
    report->host = xasprintf("%s-%04zu", model->report->host, index + 1);
    fleet->reports[index] = report;
    if (!text_is_name(report->node))
        return error_set(err, -EINVAL, "'%s' is no name for a node: give a shorter --name",
                         report->node);
    return daemon_open(&options, &fleet->daemons[index], err);
}

/* Run `count` nodes, named NAME-0001 and so on after the node in the options' report, until told to
 * stop. Returns the exit status, or -errno if they cannot be created. */
static int fleet_run(const struct daemon_options *options, unsigned count, int signal_fd,
                     struct notify *notify, struct error *err)
{
    struct fleet fleet = {
        .reports = xcalloc(count, sizeof(struct hardware_report *)),
        .daemons = xcalloc(count, sizeof(struct daemon *)),
    };
    int rc = 0;
    process_allow_descriptors(); /* each node has two connections */
    while (rc == 0 && fleet.count < count)
        rc = fleet_add(&fleet, options, err);
    if (rc == 0)
        rc = daemons_run(fleet.daemons, count, signal_fd, notify);
    for (size_t i = 0; i < fleet.count; i++) {
        daemon_close(fleet.daemons[i]);
        hardware_report_destroy(fleet.reports[i]);
    }
    free(fleet.daemons);
    free(fleet.reports);
    return rc;
}

static int offer_status(int rc)
{
    return rc == -EINVAL ? EX_CONFIG : rc == -ENODEV ? EX_UNAVAILABLE : EX_SOFTWARE;
}

static int measure_and_work(const struct worker_settings *settings,
                            const struct credentials *credentials, const char *shim,
                            const char *executor, int signal_fd)
{
    struct error err;
    struct notify notify;
    struct hardware_report *report = NULL;
    if (notify_open(&notify, &err) < 0)
        log_line(LOG_WARN, "no service manager is told of this daemon: %s", err.text);
    notify_status(&notify, "node '%s': measuring its devices", settings->name);
    int status = offer_make(settings, shim, executor, signal_fd, &report, &err);
    if (status == -EINTR) {
        status = leave_early(&err);
    } else if (status < 0) {
        status = fail_with(offer_status(status), &err);
    } else {
        struct daemon_options options = {
            .report = report,
            .coordinator = settings->coordinator,
            .credentials = credentials,
            .state = settings->state,
            .shim = shim,
            .executor = executor,
        };
        status = settings->fleet
                     ? fleet_run(&options, (unsigned)settings->fleet, signal_fd, &notify, &err)
                     : work_as_node(&options, signal_fd, &notify, &err);
        if (status < 0)
            status = fail_with(status == -EINVAL ? EX_CONFIG : EX_SOFTWARE, &err);
    }
    hardware_report_destroy(report);
    notify_close(&notify);
    return status;
}

static int credentials_status(int rc)
{
    return rc == -EACCES ? EX_NOPERM : rc == -EINVAL ? EX_CONFIG : EX_IOERR;
}

static int join_and_work(const struct worker_settings *settings, const char *shim,
                         const char *executor, int signal_fd)
{
    struct error err;
    struct credentials credentials;
    int status = credentials_open(settings, signal_fd, &credentials, &err);
    if (status == -EINTR) {
        status = leave_early(&err);
    } else if (status < 0) {
        status = fail_with(credentials_status(status), &err);
    } else {
        status = measure_and_work(settings, &credentials, shim, executor, signal_fd);
        credentials_finish(&credentials);
    }
    return status;
}

static int claim_and_work(const struct worker_settings *settings, const char *shim,
                          const char *executor, int signal_fd)
{
    struct error err;
    int claim = -1, rc = state_folder_lock(settings->state, settings->name, &claim, &err);
    int status = rc < 0 ? fail_with(rc == -EBUSY ? EX_CONFIG : EX_IOERR, &err)
                        : join_and_work(settings, shim, executor, signal_fd);
    state_folder_unlock(claim);
    return status;
}

/* --dry-run. Takes no claim, since it may run beside a worker of this name. */
static int dry_run(const struct worker_settings *settings, const char *shim, const char *executor,
                   int signal_fd)
{
    struct error err;
    int rc = credentials_check(settings, &err);
    if (rc < 0)
        return fail_with(credentials_status(rc), &err);
    rc = offer_check(settings, shim, executor, signal_fd, &err);
    return rc == -EINTR ? leave_early(&err)
           : rc < 0     ? fail_with(offer_status(rc), &err)
                        : EXIT_SUCCESS;
}

/* --check: only the settings; no executor looks for devices. */
static int check_settings(const struct worker_settings *settings)
{
    struct error err;
    int rc = credentials_check(settings, &err);
    if (rc < 0)
        return fail_with(credentials_status(rc), &err);
    rc = offer_check_settings(settings, &err);
    return rc < 0 ? fail_with(offer_status(rc), &err) : EXIT_SUCCESS;
}

/* --doctor: whatever is found is an answer, so the status is always 0. */
static int run_doctor(const struct worker_settings *settings, const char *shim,
                      const char *executor, int signal_fd)
{
    log_open("worker", LOG_ERROR);
    struct examination examination = examination_open(settings, shim, executor, signal_fd);
    examination_run(&examination, stdout);
    examination_finish(&examination);
    return EXIT_SUCCESS;
}

static int run_worker(const struct worker_settings *settings, const char *shim,
                      const char *executor)
{
    struct error err;
    int signal_fd = open_signals(&err);
    if (signal_fd < 0)
        return fail_with(EX_SOFTWARE, &err);
    int status = settings->doctor    ? run_doctor(settings, shim, executor, signal_fd)
                 : settings->dry_run ? dry_run(settings, shim, executor, signal_fd)
                                     : claim_and_work(settings, shim, executor, signal_fd);
    close(signal_fd);
    return status;
}

/* Whether --doctor is among the arguments, for when the settings cannot be read. */
static bool is_doctor(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--doctor") == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    struct worker_settings values;
    struct settings *settings;
    struct error err;
    process_hold_standard();
    process_keep_memory();
    log_open("worker", LOG_INFO);
    int status = worker_settings_read(argc, argv, &values, &settings, &err);
    if (status != 0 && is_doctor(argc, argv)) {
        examination_refuse(err.text, stdout);
        return EXIT_SUCCESS;
    }
    if (status != 0)
        return fail_with(status, &err);
    if (values.show)
        settings_show(settings, stdout);
    else if (values.check)
        status = check_settings(&values);
    if (values.show || values.check) {
        settings_destroy(settings);
        return status;
    }
    log_open("worker", (enum log_level)values.log_level);
    char *shim = beside("gimbal-shim");
    char *executor = values.executor ? xstrdup(values.executor) : beside("gimbal-executor");
    status = run_worker(&values, shim, executor);
    free(executor);
    free(shim);
    settings_destroy(settings);
    return status;
}

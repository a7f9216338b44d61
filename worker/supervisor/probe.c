/* probe.c - one executor, one event, one profile per device. */
#include "worker/supervisor/probe.h"

#include "common/base/memory.h"
#include "common/rpc/message.h"
#include "proto/executor.pb-c.h"
#include "worker/supervisor/child.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* On a machine that is busy elsewhere the usual second of computing takes however long it takes:
 * the limits are of a time without any computing, and of computing per device. */
#define PROBE_TIMEOUT_MS 30000
#define PROBE_COMPUTING_S 30
#define GONE_TIMEOUT_MS 2000

static void ignore_line(void *data, const char *line)
{
    (void)data;
    (void)line;
}

/* "0-1;2-3": the cores of the CPU devices, in their order; *count is how many. Yours to free. */
static char *print_cpusets(const struct hardware_report *report, size_t *count)
{
    char *text = xstrdup("");
    *count = 0;
    for (size_t i = 0; i < report->device_count; i++) {
        if (report->devices[i].kind != HARDWARE_CPU)
            continue;
        char *longer = xasprintf("%s%s%s", text, *text ? ";" : "", report->devices[i].cpuset);
        free(text);
        text = longer;
        (*count)++;
    }
    return text;
}

static void set_profiles(struct hardware_report *report, char *const *profiles)
{
    for (size_t i = 0; i < report->device_count; i++)
        if (report->devices[i].kind == HARDWARE_CPU)
            hardware_set_text(&report->devices[i].profile, *profiles++);
}

/* It has closed its channel, so it is about to be gone: say how, and what it printed last. */
static int explain(struct child *child, struct error *err)
{
    char how[96], last[768];
    struct pollfd gone = {.fd = child->pid_fd, .events = POLLIN};
    poll(&gone, 1, GONE_TIMEOUT_MS);
    child_read_output(child, ignore_line, NULL);
    lines_end(&child->lines, ignore_line, NULL);
    lines_last(&child->lines, last, sizeof last);
    child_kill(child, how, sizeof how);
    return error_set(err, -EPIPE, "it %s%s%s", how, last[0] ? "; its last lines: " : "", last);
}

/* In seconds, of all its threads. */
static double processor_time(pid_t pid)
{
    clockid_t clock;
    struct timespec time = {0};
    if (clock_getcpuclockid(pid, &clock) == 0)
        clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Whether it has something to say, or has ended; false when there is no sense in waiting. */
static bool await_word(const struct child *child, int stop_fd, size_t devices)
{
    struct pollfd fds[] = {{.fd = child->channel.fd, .events = POLLIN},
                           {.fd = stop_fd, .events = POLLIN}};
    double before_s = 0;
    while (poll(fds, 2, PROBE_TIMEOUT_MS) == 0) {
        double now_s = processor_time(child->pid);
        if (now_s <= before_s || now_s > PROBE_COMPUTING_S * (double)devices)
            return false;
        before_s = now_s;
    }
    return !fds[1].revents;
}

/* *out is yours, for message_free. Ends the child in any case. */
static int wait_for_event(struct child *child, int stop_fd, size_t devices, ProtobufCMessage **out,
                          struct error *err)
{
    char how[96];
    int rc = 0;
    if (await_word(child, stop_fd, devices))
        rc = channel_read(&child->channel, &gimbal__executor_event__descriptor, PROBE_TIMEOUT_MS,
                          out, err);
    if (rc == -EPIPE)
        return explain(child, err);
    child_kill(child, how, sizeof how);
    if (rc == 0)
        return error_set(err, -ETIMEDOUT, "it has measured nothing in %d s and more",
                         PROBE_TIMEOUT_MS / 1000);
    return rc < 0 ? rc : 0;
}

/* Whoever stops a service signals all its processes: the executor may have ended of that, too. */
static bool is_stopped(int stop_fd)
{
    struct pollfd stop = {.fd = stop_fd, .events = POLLIN};
    return poll(&stop, 1, 0) > 0;
}

static int take_profiles(struct hardware_report *report, size_t count,
                         const Gimbal__ExecutorEvent *event, struct error *err)
{
    if (event->event_case != GIMBAL__EXECUTOR_EVENT__EVENT_PROFILE)
        return error_set(err, -EPROTO, "it answered with something else than profiles");
    if (event->profile->n_device_json != count)
        return error_set(err, -EPROTO, "it measured %zu devices of %zu",
                         event->profile->n_device_json, count);
    set_profiles(report, event->profile->device_json);
    return 0;
}

int probe_devices(const char *shim, const char *program, double crowd, int stop_fd,
                  struct hardware_report *report, struct error *err)
{
    size_t count;
    char *cpusets = print_cpusets(report, &count), crowd_text[32];
    const char *const arguments[] = {"--probe", "--devices", cpusets, "--crowd", crowd_text, NULL};
    snprintf(crowd_text, sizeof crowd_text, "%.6g", crowd);
    struct child_options options = {.shim = shim,
                                    .program = program,
                                    .arguments = arguments,
                                    .cpuset = report->cpuset,
                                    .state_fd = -1};
    struct child child;
    ProtobufCMessage *event;
    int rc = child_start(&options, &child, err);
    free(cpusets);
    if (rc == 0)
        rc = wait_for_event(&child, stop_fd, count, &event, err);
    if (rc == 0) {
        rc = take_profiles(report, count, (const Gimbal__ExecutorEvent *)event, err);
        message_free(event);
    }
    if (rc < 0 && is_stopped(stop_fd))
        return error_set(err, -EINTR, "stopped before the devices of node '%s' were measured",
                         report->node);
    return rc < 0 ? error_prefix(err, rc, "probe by %s", program) : 0;
}

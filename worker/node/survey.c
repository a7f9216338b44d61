/* survey.c - runs an executor for each question, and takes the one event that it answers with. */
#include "worker/node/survey.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/message/message.h"
#include "common/profile/profile.h"
#include "proto/executor.pb-c.h"
#include "worker/node/child.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* On a busy machine the usual second of computing may take very long. So the limits are on time
 * without any computing, and on processor time per device. The latter is generous, because a device
 * with libraries of its own has to load and compile them, with a thread that polls for it. */
#define SURVEY_TIMEOUT_MS 30000
#define SURVEY_COMPUTING_S 180
#define GONE_TIMEOUT_MS 2000

static void ignore_line(void *data, const char *line)
{
    (void)data;
    (void)line;
}

/* Core sets of the CPU devices in their order, as in "0-1;2-3"; *count is their number. The caller
 * frees the text. */
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

/* It has closed its channel, so it is about to end: wait, then report how, and what it printed
 * last. */
static int explain_end(struct child *child, struct error *err)
{
    char last[768];
    struct pollfd gone = {.fd = child->pid_fd, .events = POLLIN};
    poll(&gone, 1, GONE_TIMEOUT_MS);
    child_read_output(child, ignore_line, NULL);
    lines_end(&child->lines, ignore_line, NULL);
    lines_last(&child->lines, last, sizeof last);
    struct child_end end = child_kill(child);
    return error_set(err, -EPIPE, "it %s%s%s", end.how, last[0] ? "; its last lines: " : "", last);
}

/* Processor time of all its threads, in seconds. */
static double processor_time(pid_t pid)
{
    clockid_t clock;
    struct timespec time = {0};
    if (clock_getcpuclockid(pid, &clock) == 0)
        clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Whether it has something to say, or has ended; false: waiting longer makes no sense. */
static bool await_word(const struct child *child, int stop_fd, size_t devices)
{
    struct pollfd fds[] = {{.fd = child->channel.fd, .events = POLLIN},
                           {.fd = stop_fd, .events = POLLIN}};
    double before_s = 0;
    while (poll(fds, 2, SURVEY_TIMEOUT_MS) == 0) {
        double now_s = processor_time(child->pid);
        if (now_s <= before_s || now_s > SURVEY_COMPUTING_S * (double)devices)
            return false;
        before_s = now_s;
    }
    return !fds[1].revents;
}

/* Returns the event, which the caller frees with message_free. Ends the child in any case. */
static int wait_for_event(struct child *child, int stop_fd, size_t devices, ProtobufCMessage **out,
                          struct error *err)
{
    int rc = 0;
    if (await_word(child, stop_fd, devices))
        rc = channel_read(&child->channel, &gimbal__executor_event__descriptor, SURVEY_TIMEOUT_MS,
                          out, err);
    if (rc == -EPIPE)
        return explain_end(child, err);
    child_kill(child);
    if (rc == 0)
        return error_set(err, -ETIMEDOUT, "it has measured nothing in %d s and more",
                         SURVEY_TIMEOUT_MS / 1000);
    return rc < 0 ? rc : 0;
}

/* Whether the worker is being stopped. A service manager signals all processes of a service, so the
 * executor may have ended because of that too. */
static bool is_stopped(int stop_fd)
{
    struct pollfd stop = {.fd = stop_fd, .events = POLLIN};
    return poll(&stop, 1, 0) > 0;
}

/* Run an executor with these arguments until it has sent the wanted event, which the caller frees.
 * -EINTR if stopped meanwhile; otherwise an error with the executor's last words. */
static int survey_ask(const struct survey *survey, const char *const *arguments,
                      Gimbal__ExecutorEvent__EventCase wanted, Gimbal__ExecutorEvent **out,
                      struct error *err)
{
    struct child_options options = {.shim = survey->shim,
                                    .program = survey->program,
                                    .arguments = arguments,
                                    .cpuset = survey->cpuset,
                                    .state_fd = -1};
    struct child child;
    ProtobufCMessage *message;
    int rc = child_start(&options, &child, err);
    if (rc == 0)
        rc = wait_for_event(&child, survey->stop_fd, survey->devices, &message, err);
    if (rc != 0 && is_stopped(survey->stop_fd))
        return error_set(err, -EINTR, "stopped before its devices were measured");
    if (rc != 0)
        return error_prefix(err, rc, "probe by %s", survey->program);
    Gimbal__ExecutorEvent *event = (Gimbal__ExecutorEvent *)message;
    if (event->event_case == wanted) {
        *out = event;
        return 0;
    }
    rc = event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_STOPPED
             ? error_set(err, -EIO, "probe: %s", event->stopped->reason)
             : error_set(err, -EPROTO, "probe by %s: it answered with something else",
                         survey->program);
    message_free(message);
    return rc;
}

int survey_find(const struct survey *survey, const char *kind, struct hardware_found *out,
                struct error *err)
{
    const char *const arguments[] = {"--list", kind ? kind : "", NULL};
    Gimbal__ExecutorEvent *event;
    *out = (struct hardware_found){0};
    int rc = survey_ask(survey, arguments, GIMBAL__EXECUTOR_EVENT__EVENT_DEVICES, &event, err);
    if (rc != 0)
        return rc;
    const Gimbal__ExecutorDevices *answer = event->devices;
    out->reason = xstrdup(answer->reason);
    out->collectives = xstrdup(answer->collectives);
    out->collectives_reason = xstrdup(answer->collectives_reason);
    out->seen = xcalloc(answer->n_found, sizeof *out->seen);
    for (; out->count < answer->n_found; out->count++) {
        const Gimbal__ExecutorDevices__Found *found = answer->found[out->count];
        out->seen[out->count] =
            (struct hardware_seen){xstrdup(found->id), xstrdup(found->name), xstrdup(found->place)};
    }
    message_free(&event->base);
    return 0;
}

static int ask_profiles(const struct survey *survey, const char *const *arguments, size_t count,
                        Gimbal__ExecutorEvent **out, struct error *err)
{
    int rc = survey_ask(survey, arguments, GIMBAL__EXECUTOR_EVENT__EVENT_PROFILE, out, err);
    if (rc != 0 || (*out)->profile->n_device_json == count)
        return rc;
    rc = error_set(err, -EPROTO, "probe by %s: it measured %zu devices of %zu", survey->program,
                   (*out)->profile->n_device_json, count);
    message_free(&(*out)->base);
    return rc;
}

/* Take over the time of a measurement, and log what the user should know of it. An executor that
 * gives no time has measured just now. */
static void take_time(struct hardware_report *report, const Gimbal__ExecutorProfile *profile)
{
    char when[32];
    if (profile->measured_unix_ms &&
        (!report->measured_unix_ms || profile->measured_unix_ms < report->measured_unix_ms))
        report->measured_unix_ms = profile->measured_unix_ms;
    if (profile->kept)
        log_line(LOG_INFO, "the cores are as they were measured on %s; --measure measures anew",
                 units_print_minute(when, sizeof when, profile->measured_unix_ms));
    if (profile->note[0])
        log_line(LOG_WARN, "%s", profile->note);
}

static int survey_cores(const struct survey *survey, struct hardware_report *report,
                        struct error *err)
{
    size_t count;
    char *cpusets = print_cpusets(report, &count), crowd[32];
    const char *arguments[9] = {"--probe", "--devices", cpusets, "--crowd", crowd};
    Gimbal__ExecutorEvent *event;
    snprintf(crowd, sizeof crowd, "%.6g", survey->crowd);
    if (survey->cache) {
        arguments[5] = "--kept";
        arguments[6] = survey->cache;
        arguments[7] = survey->measure ? "--measure" : NULL;
    }
    int rc = count ? ask_profiles(survey, arguments, count, &event, err) : 0;
    free(cpusets);
    if (rc != 0 || !count)
        return rc;
    for (size_t i = 0, next = 0; i < report->device_count; i++)
        if (report->devices[i].kind == HARDWARE_CPU)
            hardware_set_text(&report->devices[i].profile, event->profile->device_json[next++]);
    take_time(report, event->profile);
    message_free(&event->base);
    return 0;
}

static int survey_device(const struct survey *survey, struct hardware_device *device,
                         struct error *err)
{
    const char *const arguments[] = {"--probe",  "--devices", device->cpuset,
                                     "--device", device->id,  NULL};
    Gimbal__ExecutorEvent *event;
    int rc = ask_profiles(survey, arguments, 1, &event, err);
    if (rc != 0)
        return rc;
    const Gimbal__ExecutorProfile *profile = event->profile;
    device->memory_bytes = profile->memory_bytes;
    device->library_bytes = profile->library_bytes;
    device->flops = profile->flops;
    device->bandwidth = profile->bandwidth_bytes_per_s;
    device->upload = profile->upload_bytes_per_s;
    device->download = profile->download_bytes_per_s;
    hardware_set_text(&device->profile, profile->device_json[0]);
    message_free(&event->base);
    return 0;
}

/* Length of the module's name: of "cuda" in "cuda:GPU-6f0c...". */
static size_t module_size(const struct hardware_device *device)
{
    return strcspn(device->id, ":");
}

static bool is_peer(const struct hardware_device *device, const struct hardware_device *other)
{
    size_t size = module_size(device);
    return other->kind == HARDWARE_GPU && module_size(other) == size &&
           memcmp(device->id, other->id, size) == 0;
}

/* Ids of all devices of the first one's module, as in "cuda:GPU-6f0c...,GPU-91d2..."; *count is
 * their number. The caller frees the text. */
static char *print_peers(const struct hardware_report *report, size_t first, size_t *count)
{
    const struct hardware_device *device = &report->devices[first];
    char *text = xstrdup(device->id);
    *count = 1;
    for (size_t i = first + 1; i < report->device_count; i++) {
        if (!is_peer(device, &report->devices[i]))
            continue;
        const char *id = report->devices[i].id + module_size(device);
        char *longer = xasprintf("%s,%s", text, *id ? id + 1 : id);
        free(text);
        text = longer;
        (*count)++;
    }
    return text;
}

static int set_link(struct hardware_device *device, const struct hardware_link *link,
                    struct error *err)
{
    struct profile profile;
    int rc = profile_decode(device->profile, &profile, err);
    if (rc < 0)
        return rc;
    profile.host = *link;
    char *text = profile_encode(&profile);
    hardware_set_text(&device->profile, text);
    free(text);
    return 0;
}

/* Measure between device `first` and all later ones of its module. If this fails, what was measured
 * for each alone remains right: data then goes through host memory. */
static int survey_links_from(const struct survey *survey, struct hardware_report *report,
                             size_t first, struct error *err)
{
    size_t count;
    char *peers = print_peers(report, first, &count);
    const char *const arguments[] = {"--probe", "--links", "--device", peers, NULL};
    Gimbal__ExecutorEvent *event;
    int rc = 0;
    bool asked = count > 1;
    if (asked)
        rc = survey_ask(survey, arguments, GIMBAL__EXECUTOR_EVENT__EVENT_LINKS, &event, err);
    free(peers);
    if (rc != 0 || !asked)
        return rc;
    const struct hardware_link link = {event->links->latency_s, event->links->seconds_per_byte};
    for (size_t i = first; i < report->device_count && rc == 0; i++)
        if (is_peer(&report->devices[first], &report->devices[i]))
            rc = set_link(&report->devices[i], &link, err);
    message_free(&event->base);
    return rc;
}

static bool is_first(const struct hardware_report *report, size_t index)
{
    const struct hardware_device *device = &report->devices[index];
    bool first = device->kind == HARDWARE_GPU;
    for (size_t i = 0; i < index && first; i++)
        first = !is_peer(device, &report->devices[i]);
    return first;
}

/* Measure the link between devices of the same module, and write it into their profiles. If it
 * cannot be measured, that is logged and the profiles stay as they are. Only -EINTR is returned. */
static int survey_links(const struct survey *survey, struct hardware_report *report,
                        struct error *err)
{
    struct error why;
    for (size_t i = 0; i < report->device_count; i++) {
        int rc = is_first(report, i) ? survey_links_from(survey, report, i, &why) : 0;
        if (rc == -EINTR)
            return error_set(err, rc, "%s", why.text);
        if (rc < 0)
            log_line(
                LOG_WARN,
                "jobs are planned as if data between devices went through the host's memory, as "
                "links cannot be measured: %s",
                why.text);
    }
    return 0;
}

int survey_measure(const struct survey *survey, struct hardware_report *report, struct error *err)
{
    int rc = survey_cores(survey, report, err);
    for (size_t i = 0; i < report->device_count && rc == 0; i++)
        if (report->devices[i].kind == HARDWARE_GPU)
            rc = survey_device(survey, &report->devices[i], err);
    if (!report->measured_unix_ms)
        report->measured_unix_ms = clock_unix_ms();
    return rc == 0 ? survey_links(survey, report, err) : rc;
}

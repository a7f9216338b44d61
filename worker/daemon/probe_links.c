/* probe_links.c - the links between several devices of this machine, measured by one executor that
 * uses all of them. */
#include "worker/daemon/probe_internal.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/profile/profile.h"
#include "common/rpc/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static int set_link(struct hardware_device *device, const struct profile_link *link,
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
static int measure_links(const struct prober *prober, struct hardware_report *report, size_t first,
                         struct error *err)
{
    size_t count;
    char *peers = print_peers(report, first, &count);
    const char *const arguments[] = {"--probe", "--links", "--device", peers, NULL};
    Gimbal__ExecutorEvent *event;
    int rc = 0;
    bool asked = count > 1;
    if (asked)
        rc = probe_ask(prober, arguments, GIMBAL__EXECUTOR_EVENT__EVENT_LINKS, &event, err);
    free(peers);
    if (rc != 0 || !asked)
        return rc;
    const struct profile_link link = {event->links->latency_s, event->links->seconds_per_byte};
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

int probe_links(const struct prober *prober, struct hardware_report *report, struct error *err)
{
    struct error why;
    for (size_t i = 0; i < report->device_count; i++) {
        int rc = is_first(report, i) ? measure_links(prober, report, i, &why) : 0;
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

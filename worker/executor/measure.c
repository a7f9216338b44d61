/* measure.c - an executor that examines devices: which there are, how fast they and their links
 * are. */
#include "worker/executor/modes.h"

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/message/message.h"
#include "worker/executor/fabrics.h"
#include "worker/executor/session.h"
#include "worker/kernels/devices.h"
#include "worker/probe/cache.h"
#include "worker/probe/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A measurement during which this process had less than this share of its processors was made on a
 * busy machine. */
#define QUIET_SHARE 0.9

/* The result of a measurement. */
struct measured {
    struct profile profiles[CPUSETS_MAX];
    int count;
    struct probe_figures figures;
    uint64_t unix_ms; /* time of the measurement */
    bool kept;        /* found on disk, from an earlier start */
    /* For the user: why an earlier measurement is not used, or this one not kept. */
    struct error note;
};

static void send_profiles(struct session *session, struct measured *measured)
{
    Gimbal__ExecutorProfile profile = GIMBAL__EXECUTOR_PROFILE__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    const struct probe_figures *figures = &measured->figures;
    char *texts[CPUSETS_MAX];
    for (int i = 0; i < measured->count; i++)
        texts[i] = profile_encode(&measured->profiles[i]);
    profile.n_device_json = (size_t)measured->count;
    profile.device_json = texts;
    profile.memory_bytes = figures->memory_bytes;
    profile.library_bytes = figures->library_bytes;
    profile.flops = figures->flops;
    profile.bandwidth_bytes_per_s = figures->bandwidth;
    profile.upload_bytes_per_s = figures->upload;
    profile.download_bytes_per_s = figures->download;
    profile.measured_unix_ms = measured->unix_ms;
    profile.kept = measured->kept;
    text_mend(measured->note.text); /* it may contain the name of a folder */
    profile.note = measured->note.text;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_PROFILE;
    event.profile = &profile;
    session_send(session, &event);
    for (int i = 0; i < measured->count; i++)
        free(texts[i]);
}

/* Measure one device that several ranks share: all get the same profile. This is done at every
 * start, because the result includes how much of the device's memory other processes have left. */
static int measure_shared(const cpu_set_t *sets, const struct device *device,
                          const struct collectives *collectives, struct measured *measured,
                          struct error *err)
{
    struct profile processor;
    double share;
    int rc = probe_run(sets, 1, &device_cpu, collectives, &processor, &share, err);
    if (rc == 0)
        rc = probe_device(device, measured->count, processor.host, &measured->profiles[0],
                          &measured->figures, err);
    for (int i = 1; i < measured->count && rc == 0; i++)
        measured->profiles[i] = measured->profiles[0];
    return rc;
}

/* Use a kept measurement; false if there is none that can be used. */
static bool find_kept(const struct probe_cache *kept, struct measured *measured)
{
    struct profile_answer answer;
    struct error why;
    int rc = probe_cache_find(kept, &answer, &why);
    if (rc < 0)
        error_set(&measured->note, rc, "%s; measured anew", why.text);
    if (rc <= 0)
        return false;
    memcpy(measured->profiles, answer.profiles, answer.count * sizeof *answer.profiles);
    measured->unix_ms = answer.measured_unix_ms;
    measured->kept = true;
    profile_answer_finish(&answer);
    return true;
}

/* Store a measurement; if that fails, it is only noted. `share` is the part of its time in which
 * the measuring process had a processor. */
static void keep(const struct probe_cache *kept, double share, struct measured *measured)
{
    struct error why;
    const struct profile_answer answer = {.measured_unix_ms = measured->unix_ms,
                                          .busy = share * kept->question.crowd < QUIET_SHARE,
                                          .count = (size_t)measured->count,
                                          .profiles = measured->profiles};
    int rc = probe_cache_store(kept, &answer, &why);
    if (rc < 0)
        error_set(&measured->note, rc, "what was measured is not kept: %s", why.text);
}

static int measure_cores(const struct executor_options *options, const cpu_set_t *sets,
                         const struct device *device, const struct collectives *collectives,
                         struct measured *measured, struct error *err)
{
    struct probe_cache kept;
    double share;
    if (options->kept)
        probe_cache_ask(&kept, options->kept, options->device ? options->device : "cpu",
                        options->devices, collectives->name, options->crowd);
    if (options->kept && !options->measure && find_kept(&kept, measured))
        return 0;
    int rc = probe_run(sets, measured->count, device, collectives, measured->profiles, &share, err);
    measured->unix_ms = clock_unix_ms();
    if (rc == 0 && options->kept)
        keep(&kept, share, measured);
    return rc;
}

static int measure_all(const struct executor_options *options, struct measured *measured,
                       struct error *err)
{
    static cpu_set_t sets[CPUSETS_MAX];
    const char *fabric = options->fabric ? options->fabric : "gloo";
    const struct collectives *collectives = collectives_find(fabric);
    const struct device *device;
    measured->count = cpuset_devices(options->devices, options->devices ? 0 : 1, sets, err);
    if (measured->count < 0)
        return measured->count;
    if (!collectives && options->fabric)
        return error_set(err, -ENOSYS, "no collectives '%s' in this build", fabric);
    collectives = collectives ? collectives : &collectives_local;
    int rc = device_open(options->device ? options->device : "cpu", &device, err);
    if (rc < 0) /* whoever named it has to name another */
        return rc == -ENODEV || rc == -EINVAL ? -ENODATA : rc;
    if (!device->accelerator)
        return measure_cores(options, sets, device, collectives, measured, err);
    rc = measure_shared(sets, device, collectives, measured, err);
    measured->unix_ms = clock_unix_ms();
    return rc;
}

int executor_probe(const struct executor_options *options, struct error *err)
{
    static struct measured measured;
    struct session *session = session_create(options->channel);
    int rc = measure_all(options, &measured, err);
    if (rc < 0)
        session_stopped(session, 0, &(struct rank_end){.rc = rc, .err = err});
    else
        send_profiles(session, &measured);
    session_destroy(session);
    return rc;
}

/* Number of names in a list separated by commas. */
static int count_named(const char *names)
{
    int count = 1;
    for (const char *at = names; (at = strchr(at, ',')); at++)
        count++;
    return count;
}

static int measure_links(const char *names, struct hardware_link *out, struct error *err)
{
    const struct device *device;
    const struct collectives *library;
    int count = count_named(names);
    if (count < 2)
        return error_set(err, -EINVAL, "links of '%s': name two devices at least", names);
    int rc = device_open(names, &device, err);
    if (rc == 0 && (!device->collectives || !device->accelerator))
        rc = error_set(err, -EINVAL, "links of '%s': they have no library to exchange data by",
                       names);
    if (rc < 0)
        return rc;
    rc = fabrics_load(device->collectives, &library, err);
    if (rc == 0)
        rc = probe_peers(device, library, count, out, err);
    return rc < 0 ? error_prefix(err, rc, "links by %s", device->collectives) : 0;
}

int executor_links(const struct executor_options *options, struct error *err)
{
    Gimbal__ExecutorLinks links = GIMBAL__EXECUTOR_LINKS__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    struct hardware_link link = {0};
    struct session *session = session_create(options->channel);
    int rc = measure_links(options->device, &link, err);
    links.latency_s = link.latency_s;
    links.seconds_per_byte = link.seconds_per_byte;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_LINKS;
    event.links = &links;
    if (rc < 0)
        session_stopped(session, 0, &(struct rank_end){.rc = rc, .err = err});
    else
        session_send(session, &event);
    session_destroy(session);
    return rc;
}

/* Put the module's name in front of a device's id, as an executor's --device wants it. */
static void qualify(const char *module, struct device_info *info)
{
    char id[sizeof info->id];
    snprintf(id, sizeof id, "%s:%.*s", module, (int)(sizeof id - 1 - strlen(module) - 1), info->id);
    memcpy(info->id, id, sizeof id);
}

static int list(const char *module, struct device_info *infos, int most, struct error *err)
{
    const struct device *device;
    int rc = device_load(module, &device, err);
    if (rc == 0 && !device->list)
        rc = error_set(err, -EINVAL, "device '%s' is not one of several", module);
    int count = rc == 0 ? device->list(infos, most, err) : rc;
    for (int i = 0; i < count; i++)
        qualify(module, &infos[i]);
    return count;
}

/* No device is an answer too: err then has the reason that the last module gave. */
static int list_all(const char *wanted, struct device_info *infos, struct error *err)
{
    int found = 0;
    if (wanted[0])
        return list(wanted, infos, CPUSETS_MAX, err);
    for (int i = 0; device_modules[i]; i++) {
        int count = list(device_modules[i], infos + found, CPUSETS_MAX - found, err);
        found += count > 0 ? count : 0;
    }
    return found;
}

/* Try once to load the library with which ranks on such devices exchange data. The answer points to
 * static text. */
static void try_library(const char *id, Gimbal__ExecutorDevices *answer)
{
    static struct error why;
    char module[DEVICE_TEXT_SIZE];
    const struct device *device;
    const struct collectives *library;
    snprintf(module, sizeof module, "%.*s", (int)strcspn(id, ":"), id);
    if (device_load(module, &device, &why) < 0 || !device->collectives)
        return;
    answer->collectives = (char *)device->collectives;
    if (fabrics_load(device->collectives, &library, &why) < 0) {
        text_mend(why.text);
        answer->collectives_reason = why.text;
    }
}

int executor_list(const struct executor_options *options, struct error *err)
{
    static struct device_info infos[CPUSETS_MAX];
    Gimbal__ExecutorDevices__Found found[CPUSETS_MAX], *pointers[CPUSETS_MAX];
    Gimbal__ExecutorDevices answer = GIMBAL__EXECUTOR_DEVICES__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    int count = list_all(options->list, infos, err);
    if (count <= 0) {
        text_mend(err->text); /* it may contain the name of a file */
        answer.reason = err->text;
    }
    for (int i = 0; i < count; i++) {
        gimbal__executor_devices__found__init(&found[i]);
        found[i].id = infos[i].id;
        found[i].name = infos[i].name;
        found[i].place = infos[i].place;
        pointers[i] = &found[i];
    }
    answer.n_found = count > 0 ? (size_t)count : 0;
    answer.found = pointers;
    if (count > 0)
        try_library(infos[0].id, &answer);
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_DEVICES;
    event.devices = &answer;
    struct session *session = session_create(options->channel);
    session_send(session, &event);
    session_destroy(session);
    return 0;
}

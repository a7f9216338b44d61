/* targets.c - the table of targets, and that what is taken survives writing and reading. */
#include "tests/fuzz/targets.h"

#include "common/base/memory.h"
#include "common/config/job.h"
#include "common/hardware/hardware.h"
#include "common/message/message.h"
#include "common/plan/plan.h"
#include "common/profile/profile.h"
#include "common/rpc/transport.h"
#include "coordinator/planning/cluster_file.h"
#include "proto/coordinator.pb-c.h"
#include "proto/executor.pb-c.h"
#include "proto/telemetry.pb-c.h"
#include "proto/worker.pb-c.h"

#include "tests/support/printing.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(bool right, const struct fuzz_target *target, const char *words)
{
    if (right)
        return;
    fprintf(stderr, "fuzz %s: %s\n", target->name, words);
    abort();
}

/* Whoever refuses has to say why. */
static bool is_taken(int rc, const struct error *err, const struct fuzz_target *target)
{
    expect(rc == 0 || err->text[0], target, "refused without a word");
    return rc == 0;
}

/* Packed, unpacked and packed again it is the same; unknown fields too. */
static void expect_survives(const struct fuzz_target *target, const ProtobufCMessage *message)
{
    size_t size, size_again;
    struct error err = {""};
    ProtobufCMessage *again;
    void *bytes = message_pack(message, &size);
    int rc = message_unpack(target->type, bytes, size, 2 * message_quota(size), &again, &err);
    expect(rc == 0, target, err.text);
    void *bytes_again = message_pack(again, &size_again);
    expect(size == size_again && memcmp(bytes, bytes_again, size) == 0, target,
           "packed twice it is not the same");
    message_free(again);
    free(bytes_again);
    free(bytes);
}

static void run_message(const struct fuzz_target *target, const uint8_t *bytes, size_t size)
{
    struct error err = {""};
    ProtobufCMessage *message;
    int rc = message_unpack(target->type, bytes, size, message_quota(size), &message, &err);
    if (!is_taken(rc, &err, target))
        return;
    expect_survives(target, message);
    message_free(message);
}

static void run_envelope(const struct fuzz_target *target, const uint8_t *bytes, size_t size)
{
    struct error err = {""};
    Gimbal__Envelope *envelope;
    nng_msg *frame;
    if (nng_msg_alloc(&frame, 0) != 0 || nng_msg_append(frame, bytes, size) != 0)
        abort();
    int rc = envelope_decode(frame, &envelope, &err);
    nng_msg_free(frame);
    if (!is_taken(rc, &err, target))
        return;
    rc = rpc_check_version(envelope, &err);
    is_taken(rc, &err, target);
    expect_survives(target, &envelope->base);
    message_free(&envelope->base);
}

static void run_report(const struct fuzz_target *target, const uint8_t *bytes, size_t size)
{
    struct error err = {""};
    ProtobufCMessage *message;
    struct hardware_report *report, *again;
    int rc = message_unpack(target->type, bytes, size, message_quota(size), &message, &err);
    if (!is_taken(rc, &err, target))
        return;
    expect_survives(target, message);
    rc = hardware_report_from_wire((const Gimbal__HardwareReport *)message, &report, &err);
    message_free(message);
    if (!is_taken(rc, &err, target))
        return;
    Gimbal__HardwareReport *wire = hardware_report_to_wire(report);
    rc = hardware_report_from_wire(wire, &again, &err);
    expect(rc == 0, target, err.text);
    expect(hardware_report_equal(report, again), target, "sent once more it is another report");
    hardware_report_destroy(again);
    gimbal__hardware_report__free_unpacked(wire, NULL);
    hardware_report_destroy(report);
}

static char *text_of(const uint8_t *bytes, size_t size)
{
    char *text = xcalloc(1, size + 1);
    memcpy(text, bytes, size);
    return text;
}

static void run_plan(const struct fuzz_target *target, const uint8_t *bytes, size_t size)
{
    struct error err = {""};
    struct plan *plan;
    char *text = text_of(bytes, size), line[256];
    int rc = plan_decode(text, &plan, &err);
    free(text);
    if (!is_taken(rc, &err, target))
        return;
    plan_name(plan);
    plan_print(line, sizeof line, plan);
    struct plan *copy = plan_copy(plan);
    plan_destroy(plan);
    plan_destroy(copy);
}

static void run_job(const struct fuzz_target *target, const uint8_t *bytes, size_t size)
{
    struct error err = {""};
    struct job_config *job, *again;
    int rc = job_config_parse((const char *)bytes, size, "job.yaml", &job, &err);
    if (!is_taken(rc, &err, target))
        return;
    char *text = fields_print(job_config_fields, job);
    rc = job_config_parse(text, strlen(text), "again.yaml", &again, &err);
    expect(rc == 0, target, err.text);
    char *text_again = fields_print(job_config_fields, again);
    expect(strcmp(text, text_again) == 0, target, "printed twice it is not the same");
    free(text_again);
    free(text);
    job_config_destroy(again);
    job_config_destroy(job);
}

static void run_cluster(const struct fuzz_target *target, const uint8_t *bytes, size_t size)
{
    struct error err = {""};
    struct cluster_config *cluster, *again;
    int rc = cluster_config_parse((const char *)bytes, size, "cluster.yaml", &cluster, &err);
    if (!is_taken(rc, &err, target))
        return;
    char *text = fields_print(cluster_config_fields, cluster);
    rc = cluster_config_parse(text, strlen(text), "again.yaml", &again, &err);
    expect(rc == 0, target, err.text);
    char *text_again = fields_print(cluster_config_fields, again);
    expect(strcmp(text, text_again) == 0, target, "printed twice it is not the same");
    free(text_again);
    free(text);
    cluster_config_destroy(again);
    cluster_config_destroy(cluster);
}

static void run_profile(const struct fuzz_target *target, const uint8_t *bytes, size_t size)
{
    struct error err = {""};
    struct profile profile, again;
    char *text = text_of(bytes, size);
    int rc = profile_decode(text, &profile, &err);
    free(text);
    if (!is_taken(rc, &err, target))
        return;
    text = profile_encode(&profile);
    rc = profile_decode(text, &again, &err);
    expect(rc == 0, target, err.text);
    free(text);
}

static void run_hardware(const struct fuzz_target *target, const uint8_t *bytes, size_t size)
{
    struct error err = {""};
    struct hardware_report **reports, **again;
    size_t count, count_again;
    json_t *json = json_loadb((const char *)bytes, size, 0, NULL);
    if (!json)
        return;
    int rc = hardware_reports_from_json(json, &reports, &count, &err);
    json_decref(json);
    if (!is_taken(rc, &err, target))
        return;
    json = hardware_reports_to_json(reports, count);
    rc = hardware_reports_from_json(json, &again, &count_again, &err);
    expect(rc == 0 && count == count_again, target, err.text);
    json_decref(json);
    hardware_reports_destroy(again, count_again);
    hardware_reports_destroy(reports, count);
}

static const struct fuzz_target own[] = {
    {"job", NULL, run_job},
    {"cluster", NULL, run_cluster},
    {"plan", NULL, run_plan},
    {"profile", NULL, run_profile},
    {"hardware", NULL, run_hardware},
    {"tokenizer", NULL, fuzz_tokenizer_run},
    {"tokens", NULL, fuzz_tokens_run},
    {"Envelope", &gimbal__envelope__descriptor, run_envelope},
    {"HardwareReport", &gimbal__hardware_report__descriptor, run_report},
    {"ExecutorEvent", &gimbal__executor_event__descriptor, run_message},
    {"ExecutorCommand", &gimbal__executor_command__descriptor, run_message},
    {"WorkerRecord", &gimbal__worker_record__descriptor, run_message},
    {"TelemetryRecord", &gimbal__telemetry_record__descriptor, run_message},
    {"Event", &gimbal__event__descriptor, run_message},
};

#define OWN_COUNT (sizeof own / sizeof *own)
#define TARGETS_MAX 128

static struct fuzz_target targets[TARGETS_MAX];
static size_t target_count;

static void add(const ProtobufCMessageDescriptor *type)
{
    for (size_t i = 0; i < target_count; i++)
        if (targets[i].type == type)
            return;
    if (target_count == TARGETS_MAX)
        abort();
    targets[target_count++] = (struct fuzz_target){type->short_name, type, run_message};
}

static void fill(void)
{
    const ProtobufCServiceDescriptor *service = &gimbal__coordinator__descriptor;
    memcpy(targets, own, sizeof own);
    target_count = OWN_COUNT;
    for (unsigned i = 0; i < service->n_methods; i++) {
        add(service->methods[i].input);
        add(service->methods[i].output);
    }
}

const struct fuzz_target *fuzz_target_at(size_t index)
{
    if (target_count == 0)
        fill();
    return index < target_count ? &targets[index] : NULL;
}

const struct fuzz_target *fuzz_target_find(const char *name)
{
    const struct fuzz_target *target;
    for (size_t i = 0; (target = fuzz_target_at(i)); i++)
        if (strcmp(target->name, name) == 0)
            return target;
    return NULL;
}

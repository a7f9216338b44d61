/* tables.c - what `gimbal jobs` shows of a job, and `gimbal nodes` of a node and its devices. */
#include "coordinator/cli/tables.h"

#include <math.h>
#include <string.h>

#include "common/base/units.h"
#include "common/profile/profile.h"
#include "coordinator/cli/progress.h"

static const struct column jobtable_columns[] = {
    {"JOB"},
    {"NAME"},
    {"USER", .wide = true},
    {"STATE"},
    {"PROGRESS", .right = true},
    {"ETA", .right = true},
    {"LOSS", .right = true},
    {"TOK/S", .right = true},
    {"STEP TIME", .right = true, .wide = true},
    {"PLAN"},
    {"DEVICES", .wide = true},
    {"EPOCH", .right = true, .wide = true},
    {"RESTARTS", .right = true, .wide = true},
    {"CHECKPOINT", .right = true, .wide = true},
    {"SUBMITTED", .wide = true},
    {"REASON"},
};
#define JOBTABLE_COLUMNS (sizeof jobtable_columns / sizeof *jobtable_columns)

static void jobtable_add_devices(struct table *table, const Gimbal__JobStatus *job)
{
    char text[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < job->n_devices && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? "," : "",
                                 job->devices[i]);
    table_add(table, "%s", text);
}

/* Nothing is shown for a job that has made no step, nor the loss of one that resumes from a step of
 * a former epoch, which is unknown (an older coordinator says 0). */
static void jobtable_add_numbers(struct table *table, const Gimbal__JobStatus *job)
{
    char text[32];
    double left = resource_job_seconds_left(job);
    if (job->step_count)
        table_add(table, "%.1f%%", 100.0 * (double)job->step / (double)job->step_count);
    else
        table_add(table, "%s", "");
    table_add(table, "%s", left > 0 ? units_print_duration(text, sizeof text, left) : "");
    if (job->step && job->loss != 0 && !isnan(job->loss))
        table_add(table, "%.3f", job->loss);
    else
        table_add(table, "%s", "");
    table_add(table, "%s",
              job->tokens_per_s > 0 ? units_print_count(text, sizeof text, job->tokens_per_s) : "");
    if (job->step_time_s > 0)
        table_add(table, "%s", units_print_seconds(text, sizeof text, job->step_time_s));
    else
        table_add(table, "%s", "");
}

static void jobtable_add_row(struct table *table, const Gimbal__JobStatus *job)
{
    char time[32];
    table_add(table, "%s", job->job);
    table_add(table, "%s", job->name);
    table_add(table, "%s", job->user);
    table_add(table, "%s", resource_job_state(job->state));
    jobtable_add_numbers(table, job);
    table_add(table, "%s", job->plan_id);
    jobtable_add_devices(table, job);
    table_add(table, "%llu", (unsigned long long)job->epoch);
    table_add(table, "%u/%u", job->restarts, job->restarts_max);
    table_add(table, job->checkpoint_step ? "%llu" : "", (unsigned long long)job->checkpoint_step);
    table_add(table, "%s", output_print_time(time, sizeof time, job->submitted_unix_ms));
    table_add(table, "%s", job->reason);
}

void jobtable_print(const struct common *common, Gimbal__JobStatus *const *jobs, size_t count,
                    FILE *out)
{
    if (common->output >= OUTPUT_JSON) {
        json_t *items = json_array();
        for (size_t i = 0; i < count; i++)
            json_array_append_new(items, resource_job(jobs[i]));
        output_print_list((enum output)common->output, "JobList", "jobs", items, out);
        return;
    }
    struct table *table = table_create(jobtable_columns, JOBTABLE_COLUMNS);
    for (size_t i = 0; i < count; i++)
        jobtable_add_row(table, jobs[i]);
    table_print(table, (enum output)common->output, !common->no_headers, out);
    table_destroy(table);
}

static const struct column nodetable_columns[] = {
    {"NODE"},
    {"STATE"},
    {"DEVICES"},
    {"CORES", .right = true},
    {"CPUSET", .wide = true},
    {"MEMORY", .right = true},
    {"GFLOP/S", .right = true},
    {"GB/S", .right = true},
    {"CARDS", .right = true, .wide = true},
    {"SEEN", .right = true, .wide = true},
    {"RELEASE", .wide = true},
    {"JOBS"},
    {"PROCESSOR"},
    {"REASON"},
};
#define NODETABLE_COLUMNS (sizeof nodetable_columns / sizeof *nodetable_columns)

/* What its probe measured, or else its peak rates; 0: unknown. */
static void nodetable_add_rates(const Gimbal__Device *device, double *flops, double *bandwidth)
{
    struct profile profile = {0};
    if (*device->profile_json)
        profile_decode(device->profile_json, &profile, NULL);
    *flops += profile.seconds_per_flop > 0 ? 1 / profile.seconds_per_flop : device->flops;
    *bandwidth +=
        profile.seconds_per_byte > 0 ? 1 / profile.seconds_per_byte : device->bandwidth_bytes_per_s;
}

/* As in "2 cpu, 1 gpu of 79.1 GiB", by the smallest device, and the sums of their rates. */
static void nodetable_add_devices(struct table *table, const Gimbal__HardwareReport *hardware,
                                  double *flops, double *bandwidth)
{
    unsigned cpus = 0, gpus = 0;
    uint64_t least = UINT64_MAX;
    char memory[32] = "", cores[24] = "";
    for (size_t i = 0; i < hardware->n_devices; i++) {
        const Gimbal__Device *device = hardware->devices[i];
        bool own = device->kind == GIMBAL__DEVICE__KIND__GPU;
        cpus += !own;
        gpus += own;
        least = own && device->memory_bytes < least ? device->memory_bytes : least;
        nodetable_add_rates(device, flops, bandwidth);
    }
    units_print_bytes(memory, sizeof memory, (double)least);
    snprintf(cores, sizeof cores, "%u cpu%s", cpus, gpus ? ", " : "");
    if (gpus)
        table_add(table, "%s%u gpu of %s", cpus ? cores : "", gpus, memory);
    else
        table_add(table, "%s", cores);
}

static void nodetable_add_rate(struct table *table, double rate)
{
    if (rate > 0)
        table_add(table, "%.1f", rate / 1e9);
    else
        table_add(table, "%s", "");
}

/* By which devices exchange data with other hosts. */
static void nodetable_add_cards(struct table *table, unsigned cards)
{
    if (cards > 0)
        table_add(table, "%u", cards);
    else
        table_add(table, "%s", "");
}

/* Each job once, in the order of the devices. */
static void nodetable_add_jobs(struct table *table, const Gimbal__NodeStatus *node)
{
    char text[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < node->n_device_jobs && used < sizeof text; i++) {
        const char *job = node->device_jobs[i];
        if (!*job || (i > 0 && strcmp(node->device_jobs[i - 1], job) == 0))
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? "," : "", job);
    }
    table_add(table, "%s", text);
}

/* Why it is draining, or else which of its devices are slow. */
static void nodetable_add_reason(struct table *table, const Gimbal__NodeStatus *node)
{
    char text[256] = "";
    size_t used = (size_t)snprintf(text, sizeof text, "%s", node->reason);
    for (size_t i = 0; i < node->n_device_slowdowns && used < sizeof text; i++)
        if (node->device_slowdowns[i] > 1)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "%sdevice %zu takes %.1f times as long as predicted",
                                     used ? "; " : "", i, node->device_slowdowns[i]);
    table_add(table, "%s", text);
}

static void nodetable_add_row(struct table *table, const Gimbal__NodeStatus *node)
{
    static const Gimbal__HardwareReport nothing = GIMBAL__HARDWARE_REPORT__INIT;
    const Gimbal__HardwareReport *hardware = node->hardware ? node->hardware : &nothing;
    char memory[32];
    double flops = 0, bandwidth = 0;
    table_add(table, "%s", node->name);
    table_add(table, "%s", resource_node_state(node->state));
    nodetable_add_devices(table, hardware, &flops, &bandwidth);
    table_add(table, "%u", hardware->core_count);
    table_add(table, "%s", hardware->cpuset);
    table_add(table, "%s",
              units_print_bytes(memory, sizeof memory, (double)hardware->memory_bytes));
    nodetable_add_rate(table, flops);
    nodetable_add_rate(table, bandwidth);
    nodetable_add_cards(table, hardware->network_cards);
    table_add(table, "%.1fs ago", (double)node->heartbeat_age_ms / 1000);
    table_add(table, "%s", hardware->release);
    nodetable_add_jobs(table, node);
    table_add(table, "%s", hardware->cpu_model);
    nodetable_add_reason(table, node);
}

void nodetable_print(const struct common *common, Gimbal__NodeStatus *const *nodes, size_t count,
                     FILE *out)
{
    if (common->output >= OUTPUT_JSON) {
        json_t *items = json_array();
        for (size_t i = 0; i < count; i++)
            json_array_append_new(items, resource_node(nodes[i]));
        output_print_list((enum output)common->output, "NodeList", "nodes", items, out);
        return;
    }
    struct table *table = table_create(nodetable_columns, NODETABLE_COLUMNS);
    for (size_t i = 0; i < count; i++)
        nodetable_add_row(table, nodes[i]);
    table_print(table, (enum output)common->output, !common->no_headers, out);
    table_destroy(table);
}

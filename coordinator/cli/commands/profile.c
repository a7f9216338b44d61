/* profile.c - `gimbal profile`: what devices were measured to do: measured here now, kept here, or
 * reported by nodes; as rows, or in the form of `gimbal nodes -o json`, for which plans can be made
 * anywhere. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/machine.h"
#include "coordinator/cli/output.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/hardware/hardware.h"
#include "common/message/message.h"
#include "common/profile/cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOST_SIZE 256
#define NAME_DIGITS 6

struct profiled {
    struct hardware_report **reports; /* one per node */
    size_t count;
};

static const struct column profile_columns[] = {
    {"NODE"},
    {"DEVICE", .right = true},
    {"CORES"},
    {"MEASURED"},
    {"GFLOP/S", .right = true},
    {"IN BF16", .right = true},
    {"GB/S", .right = true},
    {"LATENCY", .right = true},
    {"LINK GB/S", .right = true},
    {"OVERLAP", .right = true, .wide = true},
    {"PROCESSOR", .wide = true},
};
#define PROFILE_COLUMNS (sizeof profile_columns / sizeof *profile_columns)

/* Accepts a zeroed struct. */
static void profiled_finish(struct profiled *profiled)
{
    if (profiled->reports)
        hardware_reports_destroy(profiled->reports, profiled->count);
    *profiled = (struct profiled){0};
}

static void profile_add_report(struct profiled *profiled, struct hardware_report *report)
{
    size_t size = (profiled->count + 1) * sizeof *profiled->reports;
    profiled->reports = xrealloc(profiled->reports, size);
    profiled->reports[profiled->count++] = report;
}

/* The number of cores in a list such as "0-3,8". */
static unsigned profile_count_cores(const char *cpuset)
{
    unsigned count = 0;
    while (*cpuset) {
        char *end;
        unsigned long low = strtoul(cpuset, &end, 10), high = low;
        if (*end == '-')
            high = strtoul(end + 1, &end, 10);
        if (end == cpuset || high < low)
            break;
        count += (unsigned)(high - low) + 1;
        cpuset = end + (*end == ',');
    }
    return count;
}

/* A valid name for the node: the host's, with other characters replaced, and the first digits of
 * the name under which the measurement is kept. */
static char *profile_name_node(const struct profile_kept *kept)
{
    char host[HARDWARE_NAME_SIZE - NAME_DIGITS - 1];
    snprintf(host, sizeof host, "%s", kept->question.host);
    for (char *letter = host; *letter; letter++) {
        const char text[] = {*letter, '\0'};
        if (!text_is_name(text) && (letter == host || !strchr(".-_", *letter)))
            *letter = letter == host ? 'h' : '-';
    }
    return xasprintf("%s.%.*s", *host ? host : "host", NAME_DIGITS, kept->name);
}

/* Each of its sets of cores is a device, with an equal share of the memory that is there at
 * present. */
static struct hardware_report *profile_to_report(const struct profile_kept *kept)
{
    const struct profile_question *question = &kept->question;
    char *node = profile_name_node(kept), *cpusets = xstrdup(question->cpusets), *rest = cpusets;
    char name[] = "cores";
    struct hardware_report *report =
        hardware_report_create(node, question->host, question->processor, question->cpusets);
    report->measured_unix_ms = kept->answer.measured_unix_ms;
    report->memory_bytes = machine_memory_bytes();
    report->oversubscribed = question->crowd > 1;
    for (size_t i = 0; i < kept->answer.count; i++) {
        char *cpuset = strsep(&rest, ";"), *profile = profile_encode(&kept->answer.profiles[i]);
        struct hardware_device device = {.kind = HARDWARE_CPU,
                                         .name = name,
                                         .cpuset = cpuset,
                                         .cores = profile_count_cores(cpuset),
                                         .memory_bytes = report->memory_bytes / kept->answer.count,
                                         .profile = profile};
        hardware_report_add_device(report, &device);
        report->cores += device.cores;
        free(profile);
    }
    free(cpusets);
    free(node);
    return report;
}

/* Whether `plan --local N` would use this measurement, apart from the question whether its programs
 * are the same. */
static bool profile_is_local(const struct profile_question *question, int local)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return false;
    char *cpusets = machine_cpusets(&allowed, local);
    bool same = strcmp(question->cpusets, cpusets) == 0 && strcmp(question->fabric, "local") == 0;
    free(cpusets);
    return same;
}

static void profile_take_kept(const struct profile_kept *kept, size_t count, int local,
                              struct profiled *out)
{
    char host[HOST_SIZE] = "";
    struct error ignored;
    gethostname(host, sizeof host - 1);
    for (size_t i = 0; i < count; i++) {
        if (!kept[i].file) {
            fprintf(stderr, "%s\n", kept[i].why.text);
            continue;
        }
        bool ours = strcmp(kept[i].question.host, host) == 0;
        if (!ours || (local && (out->count > 0 || !profile_is_local(&kept[i].question, local))))
            continue;
        struct hardware_report *report = profile_to_report(&kept[i]);
        if (hardware_report_check(report, &ignored) == 0)
            profile_add_report(out, report);
        else
            hardware_report_destroy(report);
    }
}

/* What is kept of this machine, newest first: everything if local is 0, otherwise the newest for
 * that number of devices. Damaged files are named on stderr. An enum exit_code; EXIT_INPUT: there
 * is nothing, and the message tells how to measure. The caller finishes *out in any case. */
static int profiled_here(int local, struct profiled *out, struct error *err)
{
    struct profile_kept *kept;
    size_t count;
    char *folder = machine_cache_folder();
    if (!folder)
        return error_set(err, EXIT_CONFIGURATION,
                         "nothing is kept, for there is no HOME: name a folder by "
                         "GIMBAL_PROFILE_CACHE");
    int rc = profile_cache_list(folder, clock_unix_ms(), &kept, &count, err);
    int code = exit_of_errno(rc);
    if (code == EXIT_DONE) {
        profile_take_kept(kept, count, local, out);
        profile_cache_free(kept, count);
    }
    if (code == EXIT_DONE && out->count == 0)
        code = error_set(err, EXIT_INPUT,
                         "'%s' has nothing of this machine%s from the last days: 'gimbal profile "
                         "run --local %d' measures it",
                         folder, local ? " as so many devices" : "", local ? local : 1);
    free(folder);
    return code;
}

/* What the nodes named by the command's arguments have reported to the coordinator; otherwise as
 * above. */
static int profiled_there(const struct invocation *invocation, struct profiled *out,
                          struct error *err)
{
    Gimbal__ListNodesReply *list;
    int code = client_list_nodes_once(&invocation->common, &list, err);
    if (code != EXIT_DONE)
        return code;
    size_t count;
    code = named_bring(invocation, (void **)list->nodes, list->n_nodes,
                       offsetof(Gimbal__NodeStatus, name), "node", &count, err);
    for (size_t i = 0; code == EXIT_DONE && i < count; i++) {
        struct hardware_report *report;
        const Gimbal__HardwareReport *hardware = list->nodes[i]->hardware;
        if (!hardware)
            code = error_set(err, EXIT_PRECONDITION, "node '%s' has told nothing of its devices",
                             list->nodes[i]->name);
        else if (hardware_report_from_wire(hardware, &report, err) < 0)
            code = EXIT_INTERNAL;
        else
            profile_add_report(out, report);
    }
    message_free(&list->base);
    return code;
}

static void profile_add_rate(struct table *table, double seconds_of_one)
{
    if (seconds_of_one > 0)
        table_add(table, "%.1f", 1e-9 / seconds_of_one);
    else
        table_add(table, "%s", "");
}

/* A device that was not measured has empty cells. */
static void profile_add_row(struct table *table, const struct hardware_report *report,
                            const struct hardware_device *device)
{
    char text[32];
    struct profile profile;
    struct error ignored;
    bool known = device->profile && profile_decode(device->profile, &profile, &ignored) == 0;
    if (!known)
        profile = (struct profile){0};
    table_add(table, "%s", report->node);
    table_add(table, "%u", device->index);
    table_add(table, "%s", device->id ? device->id : device->cpuset);
    table_add(table, "%s",
              known && report->measured_unix_ms
                  ? units_print_minute(text, sizeof text, report->measured_unix_ms)
                  : "");
    profile_add_rate(table, profile.seconds_per_flop);
    profile_add_rate(table, profile.seconds_per_flop_bf16);
    profile_add_rate(table, profile.seconds_per_byte);
    table_add(table, "%s",
              known ? units_print_seconds(text, sizeof text, profile.host.latency_s) : "");
    profile_add_rate(table, profile.host.seconds_per_byte);
    if (known)
        table_add(table, "%.2f", profile.overlap);
    else
        table_add(table, "%s", "");
    table_add(table, "%s", device->id ? device->name : report->processor);
}

static void profiled_print(const struct common *common, const struct profiled *profiled, FILE *out)
{
    enum output output = (enum output)common->output;
    if (output >= OUTPUT_JSON) {
        json_t *items = json_array();
        for (size_t i = 0; i < profiled->count; i++)
            json_array_append_new(items, hardware_report_to_json(profiled->reports[i]));
        output_print_list(output, "NodeList", "nodes", items, out);
        return;
    }
    struct table *table = table_create(profile_columns, PROFILE_COLUMNS);
    for (size_t i = 0; i < profiled->count; i++)
        for (size_t j = 0; j < profiled->reports[i]->device_count; j++)
            profile_add_row(table, profiled->reports[i], &profiled->reports[i]->devices[j]);
    table_print(table, output, !common->no_headers, out);
    table_destroy(table);
}

struct profile_run_values {
    int64_t local;
};

static const struct flag profile_run_flags[] = {
    {"local", 0, FLAG_NUMBER, offsetof(struct profile_run_values, local), "N",
     "how many devices to divide this machine's cores into, as for 'gimbal plan --local N' (1)",
     .least = 1, .standard = 1, .greatest = MACHINE_DEVICES_MAX},
    {.name = NULL},
};

static int profile_run(const struct invocation *invocation, struct error *err)
{
    const struct profile_run_values *values = invocation->values;
    struct machine local;
    struct profiled profiled = {0};
    int rc = machine_open((int)values->local, NULL, true, &local, err);
    int code = rc == -ENOENT ? EXIT_CONFIGURATION : exit_of_errno(rc);
    if (code == EXIT_DONE && local.note[0])
        code = error_set(err, EXIT_IO, "%s", local.note);
    if (code == EXIT_DONE)
        code = profiled_here((int)values->local, &profiled, err);
    if (code == EXIT_DONE)
        profiled_print(&invocation->common, &profiled, stdout);
    profiled_finish(&profiled);
    machine_finish(&local);
    return code;
}

const struct command command_profile_run = {
    .name = "profile run",
    .summary = "Measure this machine's cores now, and keep the result",
    .arguments = "",
    .flags = profile_run_flags,
    .values_size = sizeof(struct profile_run_values),
    .takes = TAKES_OUTPUT,
    .run = profile_run,
};

struct profile_show_values {
    int64_t local;
};

static const struct flag profile_show_flags[] = {
    {"local", 0, FLAG_NUMBER, offsetof(struct profile_show_values, local), "N",
     "this machine divided into N devices, as for 'gimbal plan --local N'", .least = 1,
     .greatest = MACHINE_DEVICES_MAX},
    {.name = NULL},
};

static int profile_show(const struct invocation *invocation, struct error *err)
{
    const struct profile_show_values *values = invocation->values;
    const struct common *common = &invocation->common;
    struct profiled profiled = {0};
    bool there = invocation->argument_count > 0;
    if (there && values->local)
        return error_set(err, EXIT_USAGE, "either a NODE, or --local N for this machine: not both");
    if (!there && common->given & (TAKES_ADDRESS | TAKES_TIMEOUT))
        return error_set(err, EXIT_USAGE, "a coordinator is asked for a NODE: name one");
    int code = there ? profiled_there(invocation, &profiled, err)
                     : profiled_here((int)values->local, &profiled, err);
    if (code == EXIT_DONE)
        profiled_print(common, &profiled, stdout);
    profiled_finish(&profiled);
    return code;
}

const struct command command_profile_show = {
    .name = "profile show",
    .summary = "Show the measured profile of this machine or of nodes",
    .arguments = "[NODE ...]",
    .arguments_max = NAMED_MAX,
    .flags = profile_show_flags,
    .values_size = sizeof(struct profile_show_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = profile_show,
};

static const struct command *const profile_below[] = {&command_profile_run, &command_profile_show,
                                                      NULL};

const struct command command_profile = {
    .name = "profile",
    .summary = "Measure how fast devices are, and show what was measured",
    .arguments = "run|show ...",
    .below = profile_below,
};

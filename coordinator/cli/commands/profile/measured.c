/* measured.c - presents kept measurements as nodes: each is this machine, divided in some way. */
#include "coordinator/cli/commands/profile/measured.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/hardware/wire.h"
#include "common/profile/cache.h"
#include "common/rpc/message.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOST_SIZE 256
#define NAME_DIGITS 6

static const struct column columns[] = {
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
#define COLUMNS (sizeof columns / sizeof *columns)

void measured_finish(struct measured *measured)
{
    if (measured->reports)
        hardware_reports_destroy(measured->reports, measured->count);
    *measured = (struct measured){0};
}

static void add_report(struct measured *measured, struct hardware_report *report)
{
    size_t size = (measured->count + 1) * sizeof *measured->reports;
    measured->reports = xrealloc(measured->reports, size);
    measured->reports[measured->count++] = report;
}

/* The number of cores in a list such as "0-3,8". */
static unsigned count_cores(const char *cpuset)
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
static char *name_node(const struct profile_kept *kept)
{
    char host[HARDWARE_NAME_SIZE - NAME_DIGITS - 1];
    snprintf(host, sizeof host, "%s", kept->question.host);
    for (char *letter = host; *letter; letter++) {
        const char text[] = {*letter, '\0'};
        if (!hardware_name_valid(text) && (letter == host || !strchr(".-_", *letter)))
            *letter = letter == host ? 'h' : '-';
    }
    return xasprintf("%s.%.*s", *host ? host : "host", NAME_DIGITS, kept->name);
}

/* Each of its sets of cores is a device, with an equal share of the memory that is there at
 * present. */
static struct hardware_report *to_report(const struct profile_kept *kept)
{
    const struct profile_question *question = &kept->question;
    char *node = name_node(kept), *cpusets = xstrdup(question->cpusets), *rest = cpusets;
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
                                         .cores = count_cores(cpuset),
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
static bool is_local(const struct profile_question *question, int local)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return false;
    char *cpusets = machine_cpusets(&allowed, local);
    bool same = strcmp(question->cpusets, cpusets) == 0 && strcmp(question->fabric, "local") == 0;
    free(cpusets);
    return same;
}

static void take_kept(const struct profile_kept *kept, size_t count, int local,
                      struct measured *out)
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
        if (!ours || (local && (out->count > 0 || !is_local(&kept[i].question, local))))
            continue;
        struct hardware_report *report = to_report(&kept[i]);
        if (hardware_report_check(report, &ignored) == 0)
            add_report(out, report);
        else
            hardware_report_destroy(report);
    }
}

int measured_here(int local, struct measured *out, struct error *err)
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
        take_kept(kept, count, local, out);
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

int measured_there(const struct invocation *invocation, struct measured *out, struct error *err)
{
    Gimbal__ListNodesRequest request = GIMBAL__LIST_NODES_REQUEST__INIT;
    ProtobufCMessage *reply;
    int code =
        client_call_once(&invocation->common, COORDINATOR_LIST_NODES, &request.base, &reply, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__ListNodesReply *list = (const Gimbal__ListNodesReply *)reply;
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
            add_report(out, report);
    }
    message_free(reply);
    return code;
}

static void add_rate(struct table *table, double seconds_of_one)
{
    if (seconds_of_one > 0)
        table_add(table, "%.1f", 1e-9 / seconds_of_one);
    else
        table_add(table, "%s", "");
}

/* A device that was not measured has empty cells. */
static void add_row(struct table *table, const struct hardware_report *report,
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
    add_rate(table, profile.seconds_per_flop);
    add_rate(table, profile.seconds_per_flop_bf16);
    add_rate(table, profile.seconds_per_byte);
    table_add(table, "%s",
              known ? units_print_seconds(text, sizeof text, profile.host.latency_s) : "");
    add_rate(table, profile.host.seconds_per_byte);
    if (known)
        table_add(table, "%.2f", profile.overlap);
    else
        table_add(table, "%s", "");
    table_add(table, "%s", device->id ? device->name : report->processor);
}

void measured_print(const struct common *common, const struct measured *measured, FILE *out)
{
    enum output output = (enum output)common->output;
    if (output >= OUTPUT_JSON) {
        json_t *items = json_array();
        for (size_t i = 0; i < measured->count; i++)
            json_array_append_new(items, hardware_report_to_json(measured->reports[i]));
        output_print_list(output, "NodeList", "nodes", items, out);
        return;
    }
    struct table *table = table_create(columns, COLUMNS);
    for (size_t i = 0; i < measured->count; i++)
        for (size_t j = 0; j < measured->reports[i]->device_count; j++)
            add_row(table, measured->reports[i], &measured->reports[i]->devices[j]);
    table_print(table, output, !common->no_headers, out);
    table_destroy(table);
}

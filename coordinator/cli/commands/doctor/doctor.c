/* doctor.c - `gimbal doctor`: checks whether this machine and its links are fit for jobs, and
 * prints what was found as tables, or as one JSON object. */
#include "coordinator/cli/commands/doctor/doctor.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"

#include "common/base/units.h"
#include "common/message/message.h"

#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MAX 64

static const struct doctor_check *const doctor_checks[] = {
    &doctor_worker,  &doctor_leftovers,   &doctor_job,
    &doctor_cluster, &doctor_checkpoints, &doctor_neighbours,
    &doctor_devices, &doctor_links,       NULL,
};

const Gimbal__NodeStatus *visit_own(const struct visit *visit)
{
    for (size_t i = 0; visit->nodes && visit->node && i < visit->nodes->n_nodes; i++)
        if (strcmp(visit->nodes->nodes[i]->name, visit->node) == 0)
            return visit->nodes->nodes[i];
    return NULL;
}

bool visit_is_alive(const Gimbal__NodeStatus *node)
{
    return node->hardware && (node->state == GIMBAL__NODE_STATUS__STATE__ALIVE ||
                              node->state == GIMBAL__NODE_STATUS__STATE__DRAINING ||
                              node->state == GIMBAL__NODE_STATUS__STATE__DRAINED);
}

static const struct column report_columns[] = {
    {"CHECK"},
    {"RESULT"},
    {"LOOKS AT", .wide = true},
    {"FOUND"},
};
#define REPORT_COLUMNS (sizeof report_columns / sizeof *report_columns)

static const struct column report_link_columns[] = {
    {"LINK"},
    {"FROM"},
    {"TO"},
    {"LATENCY", .right = true},
    {"MEDIAN", .right = true},
    {"BANDWIDTH", .right = true},
    {"MEDIAN", .right = true},
    {"MEASURED"},
};
#define REPORT_LINK_COLUMNS (sizeof report_link_columns / sizeof *report_link_columns)

/* EXIT_DONE, EXIT_WARNED or EXIT_BLOCKED, according to the worst finding. */
static int report_exit(const struct findings *findings)
{
    static const int codes[] = {
        [VERDICT_OK] = EXIT_DONE,
        [VERDICT_WARNING] = EXIT_WARNED,
        [VERDICT_BLOCKING] = EXIT_BLOCKED,
    };
    return codes[findings_worst(findings)];
}

static void report_print_json(const struct visit *visit, const struct findings *findings, FILE *out)
{
    json_t *members = json_pack("{s:s, s:s*, s:o, s:O*}", "verdict",
                                verdict_name(findings_worst(findings)), "node", visit->node,
                                "findings", findings_to_json(findings), "links", visit->links);
    output_print_object((enum output)visit->invocation->common.output,
                        resource_object("Doctor", members), out);
}

static void report_add_seconds(struct table *table, const json_t *link, const char *key)
{
    char text[32];
    double seconds = json_number_value(json_object_get(link, key));
    table_add(table, "%s", units_print_seconds(text, sizeof text, seconds));
}

static void report_add_bandwidth(struct table *table, const json_t *link, const char *key)
{
    char text[32];
    double bytes = json_number_value(json_object_get(link, key));
    if (bytes > 0)
        table_add(table, "%s/s", units_print_bytes(text, sizeof text, bytes));
    else
        table_add(table, "%s", "");
}

/* The day and the minute by the node's calendar; a way is timed when it is asked for. */
static void report_add_time(struct table *table, const json_t *link)
{
    char text[32] = "now";
    json_int_t when = json_integer_value(json_object_get(link, "measured_unix_ms"));
    if (when > 0)
        units_print_minute(text, sizeof text, (uint64_t)when);
    else if (json_number_value(json_object_get(link, "bandwidth")) > 0)
        *text = '\0';
    table_add(table, "%s", text);
}

static void report_print_links(const struct visit *visit, FILE *out)
{
    struct table *table = table_create(report_link_columns, REPORT_LINK_COLUMNS);
    size_t index;
    json_t *link;
    json_array_foreach(visit->links, index, link)
    {
        table_add(table, "%s", json_string_value(json_object_get(link, "level")));
        table_add(table, "%s", json_string_value(json_object_get(link, "from")));
        table_add(table, "%s", json_string_value(json_object_get(link, "to")));
        report_add_seconds(table, link, "latency_s");
        report_add_seconds(table, link, "median_latency_s");
        report_add_bandwidth(table, link, "bandwidth");
        report_add_bandwidth(table, link, "median_bandwidth");
        report_add_time(table, link);
    }
    table_print(table, OUTPUT_TABLE, !visit->invocation->common.no_headers, out);
    table_destroy(table);
    fputc('\n', out);
}

static void report_print(const struct visit *visit, const struct findings *findings, FILE *out)
{
    const struct common *common = &visit->invocation->common;
    if (common->output >= OUTPUT_JSON) {
        report_print_json(visit, findings, out);
        return;
    }
    if (json_array_size(visit->links) > 0)
        report_print_links(visit, out);
    struct table *table = table_create(report_columns, REPORT_COLUMNS);
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *item = &findings->items[i];
        table_add(table, "%s", item->check);
        table_add(table, "%s", verdict_name(item->verdict));
        table_add(table, "%s", item->about);
        table_add(table, "%s%s%s", item->found, item->right ? ". What would be right: " : "",
                  item->right ? item->right : "");
    }
    table_print(table, (enum output)common->output, !common->no_headers, out);
    table_destroy(table);
}

struct doctor_values {
    const char *file;
    bool pairs;
};

static const struct flag doctor_flags[] = {
    {"file", 'f', FLAG_TEXT, offsetof(struct doctor_values, file), "FILE",
     "check the files and folders of this job, too"},
    {"pairs", 0, FLAG_SWITCH, offsetof(struct doctor_values, pairs), NULL,
     "check the links inside nodes, and from here to each node"},
    {.name = NULL},
};

static int doctor_command_run(const struct invocation *invocation, struct error *err)
{
    (void)err;
    const struct doctor_values *values = invocation->values;
    struct visit visit = {
        .invocation = invocation, .job_path = values->file, .pairs = values->pairs};
    struct findings findings = {0};
    doctor_run(doctor_checks, &visit, &findings);
    report_print(&visit, &findings, stdout);
    int code = report_exit(&findings);
    findings_finish(&findings);
    if (visit.nodes)
        message_free((ProtobufCMessage *)visit.nodes);
    hardware_report_destroy(visit.report);
    json_decref(visit.links);
    free(visit.node);
    return code;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "Check whether this machine and its links are fit to train",
    .arguments = "[-- gimbal-worker OPTION ...]",
    .arguments_min = 0,
    .arguments_max = ARGUMENTS_MAX,
    .flags = doctor_flags,
    .values_size = sizeof(struct doctor_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = doctor_command_run,
};

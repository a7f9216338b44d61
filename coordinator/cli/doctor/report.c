/* report.c - prints findings as tables, or as one JSON object. */
#include "coordinator/cli/doctor/report.h"

#include "common/base/units.h"
#include "coordinator/cli/exit.h"

static const struct column columns[] = {
    {"CHECK"},
    {"RESULT"},
    {"LOOKS AT", .wide = true},
    {"FOUND"},
};
#define COLUMNS (sizeof columns / sizeof *columns)

static const struct column link_columns[] = {
    {"LINK"},
    {"FROM"},
    {"TO"},
    {"LATENCY", .right = true},
    {"MEDIAN", .right = true},
    {"BANDWIDTH", .right = true},
    {"MEDIAN", .right = true},
    {"MEASURED"},
};
#define LINK_COLUMNS (sizeof link_columns / sizeof *link_columns)

int report_exit(const struct findings *findings)
{
    static const int codes[] = {
        [VERDICT_OK] = EXIT_DONE,
        [VERDICT_WARNING] = EXIT_WARNED,
        [VERDICT_BLOCKING] = EXIT_BLOCKED,
    };
    return codes[findings_worst(findings)];
}

static void print_json(const struct visit *visit, const struct findings *findings, FILE *out)
{
    json_t *members = json_pack("{s:s, s:s*, s:o, s:O*}", "verdict",
                                verdict_name(findings_worst(findings)), "node", visit->node,
                                "findings", findings_to_json(findings), "links", visit->links);
    output_print_object((enum output)visit->invocation->common.output,
                        resource_object("Doctor", members), out);
}

static void add_seconds(struct table *table, const json_t *link, const char *key)
{
    char text[32];
    double seconds = json_number_value(json_object_get(link, key));
    table_add(table, "%s", units_print_seconds(text, sizeof text, seconds));
}

static void add_bandwidth(struct table *table, const json_t *link, const char *key)
{
    char text[32];
    double bytes = json_number_value(json_object_get(link, key));
    if (bytes > 0)
        table_add(table, "%s/s", units_print_bytes(text, sizeof text, bytes));
    else
        table_add(table, "%s", "");
}

/* The day and the minute by the node's calendar; a way is timed when it is asked for. */
static void add_time(struct table *table, const json_t *link)
{
    char text[32] = "now";
    json_int_t when = json_integer_value(json_object_get(link, "measured_unix_ms"));
    if (when > 0)
        units_print_minute(text, sizeof text, (uint64_t)when);
    else if (json_number_value(json_object_get(link, "bandwidth")) > 0)
        *text = '\0';
    table_add(table, "%s", text);
}

static void print_links(const struct visit *visit, FILE *out)
{
    struct table *table = table_create(link_columns, LINK_COLUMNS);
    size_t index;
    json_t *link;
    json_array_foreach(visit->links, index, link)
    {
        table_add(table, "%s", json_string_value(json_object_get(link, "level")));
        table_add(table, "%s", json_string_value(json_object_get(link, "from")));
        table_add(table, "%s", json_string_value(json_object_get(link, "to")));
        add_seconds(table, link, "latency_s");
        add_seconds(table, link, "median_latency_s");
        add_bandwidth(table, link, "bandwidth");
        add_bandwidth(table, link, "median_bandwidth");
        add_time(table, link);
    }
    table_print(table, OUTPUT_TABLE, !visit->invocation->common.no_headers, out);
    table_destroy(table);
    fputc('\n', out);
}

void report_print(const struct visit *visit, const struct findings *findings, FILE *out)
{
    const struct common *common = &visit->invocation->common;
    if (common->output >= OUTPUT_JSON) {
        print_json(visit, findings, out);
        return;
    }
    if (json_array_size(visit->links) > 0)
        print_links(visit, out);
    struct table *table = table_create(columns, COLUMNS);
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

/* nodelist.c - reads the reports of a cluster from JSON, as `gimbal nodes -o json` prints them, to
 * plan for a cluster that a file describes. */
#include "common/hardware/hardware.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/hardware/fields.h"

void hardware_reports_destroy(struct hardware_report **reports, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hardware_report_destroy(reports[i]);
    free(reports);
}

/* -EINVAL when the last report has the same name as an earlier one. */
static int check_last_name(struct hardware_report *const *reports, size_t count, struct error *err)
{
    for (size_t i = 0; i + 1 < count; i++)
        if (strcmp(reports[i]->node, reports[count - 1]->node) == 0)
            return error_set(err, -EINVAL, "'name' is '%s', which nodes[%zu] has too",
                             reports[i]->node, i);
    return 0;
}

int hardware_reports_from_json(const json_t *json, struct hardware_report ***out, size_t *count,
                               struct error *err)
{
    const char *version = "", *kind = "";
    int rc = field_text(json, "apiVersion", &version, err);
    if (rc == 0)
        rc = field_text(json, "kind", &kind, err);
    if (rc < 0)
        return rc;
    if (strcmp(version, "gimbal/v1") != 0 || strcmp(kind, "NodeList") != 0)
        return error_set(err, -EINVAL, "this is '%s' of '%s', it must be 'NodeList' of 'gimbal/v1'",
                         kind, version);
    const json_t *nodes = json_object_get(json, "nodes");
    if (!json_is_array(nodes))
        return error_set(err, -EINVAL, "'nodes' must be a list");

    struct hardware_report **reports = xcalloc(json_array_size(nodes), sizeof *reports);
    size_t done = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(nodes); i++) {
        rc = hardware_report_from_json(json_array_get(nodes, i), &reports[done], err);
        if (rc == 0)
            rc = check_last_name(reports, ++done, err);
        if (rc < 0)
            error_prefix(err, rc, "nodes[%zu]", i);
    }
    if (rc < 0) {
        hardware_reports_destroy(reports, done);
        return rc;
    }
    *out = reports;
    *count = done;
    return 0;
}

/* nodelist.c - see nodelist.h. */
#include "tests/support/nodelist.h"

json_t *hardware_reports_to_json(struct hardware_report *const *reports, size_t count)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(nodes, hardware_report_to_json(reports[i]));
    return json_pack("{s:s, s:s, s:o}", "apiVersion", "gimbal/v1", "kind", "NodeList", "nodes",
                     nodes);
}

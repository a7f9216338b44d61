/* node.c - a node: its hardware, and what its devices are doing. */
#include "coordinator/resources/resources.h"

#include "common/hardware/wire.h"

const char *resource_node_state(Gimbal__NodeStatus__State state)
{
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(&gimbal__node_status__state__descriptor, (int)state);
    return value ? value->name : "UNKNOWN";
}

json_t *resource_node(const Gimbal__NodeStatus *node)
{
    struct hardware_report *report;
    json_t *jobs = json_array(), *slowdowns = json_array();
    for (size_t i = 0; i < node->n_device_jobs; i++)
        json_array_append_new(jobs, json_string(node->device_jobs[i]));
    for (size_t i = 0; i < node->n_device_slowdowns; i++)
        json_array_append_new(slowdowns, json_real(node->device_slowdowns[i]));
    json_t *members = json_pack("{s:s, s:s, s:s, s:f, s:o, s:o}", "name", node->name, "state",
                                resource_node_state(node->state), "reason", node->reason,
                                "heartbeat_age_s", (double)node->heartbeat_age_ms / 1000,
                                "device_jobs", jobs, "device_slowdowns", slowdowns);
    if (node->hardware && hardware_report_from_wire(node->hardware, &report, NULL) == 0) {
        json_t *hardware = hardware_report_to_json(report);
        json_object_update(members, hardware);
        json_decref(hardware);
        hardware_report_destroy(report);
    }
    return resource_object("Node", members);
}

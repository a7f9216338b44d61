/* resources.c - what all resources have in common, then one function for each kind. */
#include "coordinator/resources/resources.h"

#include <assert.h>
#include <math.h>

#include "common/hardware/hardware.h"
#include "coordinator/picture/picture.h"

json_t *resource_object(const char *kind, json_t *members)
{
    json_t *object = json_pack("{s:s, s:s}", "apiVersion", "gimbal/v1", "kind", kind);
    assert(object && members);
    json_object_update(object, members);
    json_decref(members);
    return object;
}

json_t *resource_list(const char *kind, const char *member, json_t *items)
{
    return resource_object(kind, json_pack("{s:o}", member, items));
}

json_t *resource_number(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

json_t *resource_event(const Gimbal__Event *event)
{
    json_t *more = *event->json ? json_loads(event->json, 0, NULL) : NULL;
    return resource_object("Event", json_pack("{s:f, s:s, s:s, s:s, s:s, s:o}", "unix_s",
                                              (double)event->unix_ms / 1000, "event", event->kind,
                                              "job", event->job, "node", event->node, "text",
                                              event->text, "more", more ? more : json_null()));
}

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

const char *resource_job_state(Gimbal__JobStatus__State state)
{
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(&gimbal__job_status__state__descriptor, (int)state);
    return value ? value->name : "UNKNOWN";
}

bool resource_job_is_over(Gimbal__JobStatus__State state)
{
    return state == GIMBAL__JOB_STATUS__STATE__DONE || state == GIMBAL__JOB_STATUS__STATE__FAILED ||
           state == GIMBAL__JOB_STATUS__STATE__CANCELLED;
}

double resource_job_seconds_left(const Gimbal__JobStatus *job)
{
    if (resource_job_is_over(job->state) || job->state == GIMBAL__JOB_STATUS__STATE__PAUSED ||
        job->step >= job->step_count)
        return 0;
    return job->step_time_s * (double)(job->step_count - job->step);
}

json_t *resource_job(const Gimbal__JobStatus *job)
{
    json_t *devices = json_array();
    for (size_t i = 0; i < job->n_devices; i++)
        json_array_append_new(devices, json_string(job->devices[i]));
    json_t *members = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:f, s:f, s:f, s:s, s:o, s:f, s:f, "
        "s:I, s:I, s:I, s:s, s:s, s:s, s:I}",
        "job", job->job, "name", job->name, "user", job->user, "state",
        resource_job_state(job->state), "reason", job->reason, "epoch", (json_int_t)job->epoch,
        "step", (json_int_t)job->step, "step_count", (json_int_t)job->step_count, "loss",
        resource_number(job->loss), "tokens_per_s", job->tokens_per_s, "step_time_s",
        job->step_time_s, "eta_s", resource_job_seconds_left(job), "plan", job->plan_id, "devices",
        devices, "submitted_unix_s", (double)job->submitted_unix_ms / 1000, "finished_unix_s",
        (double)job->finished_unix_ms / 1000, "restarts", (json_int_t)job->restarts, "restarts_max",
        (json_int_t)job->restarts_max, "checkpoint_step", (json_int_t)job->checkpoint_step,
        "checkpoint", job->checkpoint, "checkpoint_folder", job->checkpoint_folder, "origin",
        job->origin, "origin_step", (json_int_t)job->origin_step);
    return resource_object("Job", members);
}

json_t *resource_checkpoint(const Gimbal__Checkpoint *checkpoint)
{
    return resource_object(
        "Checkpoint",
        json_pack("{s:I, s:I, s:s, s:I, s:f, s:b}", "step", (json_int_t)checkpoint->step, "epoch",
                  (json_int_t)checkpoint->epoch, "folder", checkpoint->folder, "bytes",
                  (json_int_t)checkpoint->bytes, "unix_s", (double)checkpoint->unix_ms / 1e3,
                  "damaged", checkpoint->damaged));
}

json_t *resource_times(const Gimbal__InstructionTimes *times)
{
    return resource_object(
        "InstructionTimes",
        json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:f}", "block", times->block_type, "instruction",
                  times->instruction, "steps", (json_int_t)times->count, "seconds", times->seconds,
                  "predicted_seconds", times->predicted_seconds, "median_seconds",
                  times->median_seconds, "median_ratio", times->median_ratio));
}

/* Rounded to nanoseconds: more digits mean nothing. */
static json_t *timeline_seconds(double value)
{
    return resource_number(round(value * 1e9) / 1e9);
}

static json_t *timeline_box(const struct picture_box *box)
{
    int micro_batch = box->place.micro_batch;
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "lane", box_lane_name(box->place.lane), "section",
                     section_name(box->place.section), "micro_batch",
                     micro_batch >= 0 ? json_integer(micro_batch) : json_null(), "begin_s",
                     timeline_seconds(box->begin_s), "end_s", timeline_seconds(box->end_s));
}

static json_t *timeline_boxes(const struct picture_row *row)
{
    json_t *items = json_array();
    for (size_t i = 0; i < row->boxes.count; i++)
        json_array_append_new(items, timeline_box(&row->boxes.items[i]));
    return items;
}

/* null if the side is missing. */
static json_t *timeline_row(const struct picture_side *side, size_t index)
{
    if (!side)
        return json_null();
    const struct picture_row *row = &side->rows[index];
    return json_pack("{s:o, s:I, s:o}", "bubble", resource_number(row->bubble),
                     "instructions_left_out", (json_int_t)row->instructions_left, "boxes",
                     row->told ? timeline_boxes(row) : json_null());
}

static json_t *timeline_ranks(const struct resource_timeline *of,
                              const struct picture_side *predicted)
{
    const struct picture *picture = of->picture;
    json_t *items = json_array();
    for (size_t i = 0; picture && i < picture->count; i++) {
        const struct picture_rank *rank = &picture->ranks[i];
        json_t *item =
            json_pack("{s:i, s:i, s:s?, s:o, s:o}", "rank", rank->rank, "stage", rank->stage,
                      "device", rank->device, "predicted", timeline_row(predicted, i), "measured",
                      timeline_row(of->measured, i));
        json_array_append_new(items, item);
    }
    return items;
}

/* Its length, and what its rows leave out. */
static json_t *timeline_side(const struct picture_side *side)
{
    size_t left_out = 0, without = 0;
    double left_out_s = 0;
    if (!side)
        return json_null();
    for (size_t i = 0; i < side->count; i++) {
        left_out += side->rows[i].boxes.left_out;
        left_out_s += side->rows[i].boxes.left_out_s;
        without += !side->rows[i].told;
    }
    return json_pack("{s:o, s:o, s:I, s:o, s:I}", "step_s", timeline_seconds(side->step_s),
                     "bubble", resource_number(side->bubble), "boxes_left_out",
                     (json_int_t)left_out, "boxes_left_out_s", timeline_seconds(left_out_s),
                     "ranks_without_boxes", (json_int_t)without);
}

json_t *resource_timeline(const struct resource_timeline *of)
{
    const struct picture *picture = of->picture;
    const struct picture_side *predicted =
        picture && picture->predicted.step_s > 0 ? &picture->predicted : NULL;
    json_t *measured = timeline_side(of->measured);
    if (of->measured) {
        json_object_set_new(measured, "step", json_integer((json_int_t)of->step));
        json_object_set_new(measured, "unix_s", json_real(of->unix_s));
    }
    json_t *members = json_pack(
        "{s:s, s:I, s:s, s:b, s:i, s:I, s:o, s:s, s:o, s:s, s:o}", "job", of->job, "epoch",
        (json_int_t)of->epoch, "plan", of->plan, "pending", of->pending, "rank_count",
        of->rank_count, "ranks_left_out",
        (json_int_t)(picture ? (size_t)picture->rank_count - picture->count : 0), "predicted",
        timeline_side(predicted), "predicted_reason", of->predicted_why, "measured", measured,
        "measured_reason", of->measured_why, "ranks", timeline_ranks(of, predicted));
    return resource_object("Timeline", members);
}

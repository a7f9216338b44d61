/* job.c - a job, its checkpoints, and where its time goes. */
#include "coordinator/resources/resources.h"

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
        "s:I, s:I, s:I, s:s}",
        "job", job->job, "name", job->name, "user", job->user, "state",
        resource_job_state(job->state), "reason", job->reason, "epoch", (json_int_t)job->epoch,
        "step", (json_int_t)job->step, "step_count", (json_int_t)job->step_count, "loss",
        resource_number(job->loss), "tokens_per_s", job->tokens_per_s, "step_time_s",
        job->step_time_s, "eta_s", resource_job_seconds_left(job), "plan", job->plan_id, "devices",
        devices, "submitted_unix_s", (double)job->submitted_unix_ms / 1000, "finished_unix_s",
        (double)job->finished_unix_ms / 1000, "restarts", (json_int_t)job->restarts, "restarts_max",
        (json_int_t)job->restarts_max, "checkpoint_step", (json_int_t)job->checkpoint_step,
        "checkpoint", job->checkpoint);
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

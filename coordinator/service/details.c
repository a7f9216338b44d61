/* details.c - all that users are told of one job. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"

#include "common/base/memory.h"

#include <stdlib.h>

static void list_evaluations(const struct job_telemetry *measured, struct job_details *details)
{
    size_t count = measured->evaluations.count;
    Gimbal__EvaluationRecord *items = details->evaluations = xcalloc(count, sizeof *items);
    Gimbal__GetJobReply *reply = &details->reply;
    reply->evaluations = xcalloc(count, sizeof(Gimbal__EvaluationRecord *));
    for (; reply->n_evaluations < count; reply->n_evaluations++) {
        Gimbal__EvaluationRecord *item = &items[reply->n_evaluations];
        gimbal__evaluation_record__init(item);
        item->step = measured->evaluations.items[reply->n_evaluations].step;
        item->loss = measured->evaluations.items[reply->n_evaluations].loss;
        reply->evaluations[reply->n_evaluations] = item;
    }
}

static void list_times(const struct job_telemetry *measured, struct job_details *details)
{
    const struct instructions *instructions = &measured->instructions;
    Gimbal__InstructionTimes *items = details->times = xcalloc(instructions->count, sizeof *items);
    Gimbal__GetJobReply *reply = &details->reply;
    reply->times = xcalloc(instructions->count, sizeof(Gimbal__InstructionTimes *));
    for (; reply->n_times < instructions->count; reply->n_times++) {
        struct instruction_sums *kind = &instructions->kinds[reply->n_times];
        Gimbal__InstructionTimes *item = &items[reply->n_times];
        gimbal__instruction_times__init(item);
        item->block_type = kind->block;
        item->instruction = kind->class;
        item->count = kind->count;
        item->seconds = kind->measured_s;
        item->predicted_seconds = kind->predicted_s;
        item->median_seconds = instruction_time_median_s(kind);
        item->median_ratio = instruction_ratio_median(kind);
        reply->times[reply->n_times] = item;
    }
}

static void add_measured(const struct job_telemetry *measured, struct job_details *details)
{
    list_evaluations(measured, details);
    list_times(measured, details);
    details->reply.sample.data = (uint8_t *)measured->evaluations.text;
    details->reply.sample.len = measured->evaluations.text_size;
}

void job_details_begin(struct job_details *details, const struct service *service,
                       const struct job *job)
{
    const struct dossier *dossier = dossier_find(service, job->id);
    const struct job_telemetry *measured = telemetry_find(service->telemetry, job->id);
    Gimbal__GetJobReply *reply = &details->reply;
    *details = (struct job_details){.reply = GIMBAL__GET_JOB_REPLY__INIT,
                                    .spec = GIMBAL__JOB_SPEC__INIT,
                                    .plan = GIMBAL__PLAN__INIT};
    details->spec.name = job->name;
    details->spec.user = job->user;
    details->spec.yaml = job->text;
    reply->spec = &details->spec;
    reply->status = job_to_wire(service, job);
    if (dossier->planning.plan) {
        details->plan.id = dossier->planning.plan->id;
        details->plan.json = dossier->planning.json;
        reply->plan = &details->plan;
    }
    if (dossier->planning.candidates)
        reply->candidates = dossier->planning.candidates;
    if (measured)
        add_measured(measured, details);
    reply->checkpoints = checkpoints_to_wire(service, job, &reply->n_checkpoints);
}

void job_details_finish(struct job_details *details)
{
    Gimbal__GetJobReply *reply = &details->reply;
    for (size_t i = 0; i < reply->n_checkpoints; i++)
        gimbal__checkpoint__free_unpacked(reply->checkpoints[i], NULL);
    free(reply->checkpoints);
    free(reply->evaluations);
    free(reply->times);
    free(details->evaluations);
    free(details->times);
    gimbal__job_status__free_unpacked(reply->status, NULL);
}

/* history.h - what has happened, told once, in words and as JSON: the stream that `gimbal events`
 * follows and the store keeps, the log, and what is counted of it since the coordinator started. */
#ifndef COORDINATOR_TURN_HISTORY_H
#define COORDINATOR_TURN_HISTORY_H

#include "common/base/histogram.h"
#include "coordinator/turn/state.h"

#include <jansson.h>

#define EVENTS_STREAM "events"
#define EVENTS_KEPT 10000 /* in memory; the store has more */

#define HISTORY_KIND_SIZE 32

/* Initialize to zero. */
struct history {
    struct history_kind {
        char kind[HISTORY_KIND_SIZE];
        uint64_t count;
    } * kinds; /* one entry per kind of event that occurred */
    size_t kind_count, kind_capacity;
    struct history_replans {
        uint64_t count, steps_lost;
        double seconds; /* from the break to the next finished step */
    } replans[JOB_REASONS];
    struct histogram search_us; /* duration of searches for jobs' plans */
};
void history_finish(struct history *history);

/* Append to the stream of events. Takes ownership of json, which may be NULL; job and node may be
 * "". */
void history_tell(struct state *state, const char *kind, const char *job, const char *node,
                  json_t *json, const char *format, ...) __attribute__((format(printf, 6, 7)));
void history_tell_membership(struct state *state, const struct membership_event *event);
/* Only if its state or reason differs from what was last told. */
void history_tell_job(struct state *state, const struct job *job);
/* Tell that a job which broke goes on, once it has finished a step, or all that is left to do. */
void history_tell_replan(struct state *state, const struct job *job);
void history_tell_plan(struct state *state, const struct job *job);
/* At most one per second for each job, one per minute while the disk is full, but always the last.
 */
void history_tell_step(struct state *state, const struct job *job);
void history_tell_evaluation(struct state *state, const Gimbal__EvaluationRecord *record);
/* A rank has said that nothing of the job is left to do, and this of its last step: tell what was
 * not told yet. Rank 0, which tells of all steps, may be lost, and after the job's end, which may
 * follow from this, nobody listens any more. */
void history_tell_last(struct state *state, const struct job *job, const Gimbal__LastStep *last);
/* Whether an evaluation after this step, or a later one, is known. */
bool history_knows_evaluation(const struct state *state, const struct job *job, uint64_t step);

#endif

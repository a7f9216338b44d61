/* telemetry.h - what jobs report while they run: steps, instructions, evaluations, traces, log
 * lines.
 *
 * The caller has checked that the job exists; reports of an epoch earlier than one already seen are
 * refused here. Nothing is stored: after a restart, telemetry starts anew with the next step. */
#ifndef COORDINATOR_TELEMETRY_TELEMETRY_H
#define COORDINATOR_TELEMETRY_TELEMETRY_H

#include "coordinator/telemetry/evaluations.h"
#include "coordinator/telemetry/instructions.h"
#include "coordinator/telemetry/lines.h"
#include "coordinator/telemetry/steps.h"
#include "coordinator/telemetry/traces.h"

#define TELEMETRY_JOB_SIZE 32
/* Traces of all jobs together; exceeded only if a single job has more. */
#define TELEMETRY_TRACE_BYTES_MAX ((size_t)64 << 20)

struct telemetry_config {
    size_t lines_max, line_bytes_max; /* per job */
};

#define TELEMETRY_CONFIG_DEFAULT                                                                   \
    ((struct telemetry_config){.lines_max = 10000, .line_bytes_max = 1 << 20})

/* Lent until the job is forgotten; read-only for callers. */
struct job_telemetry {
    char job[TELEMETRY_JOB_SIZE];
    uint32_t epoch; /* of the instructions: a new plan has new predictions */
    struct steps steps;
    struct instructions instructions;
    struct evaluations evaluations;
    struct traces traces;
    struct lines *lines;
};

struct telemetry *telemetry_create(const struct telemetry_config *config);
void telemetry_destroy(struct telemetry *telemetry);

/* Results as of steps_add() and instructions_add(); -ESTALE for an earlier epoch. If one of several
 * instruction records is refused, those before it have been taken. */
int telemetry_step(struct telemetry *telemetry, const char *job, const struct step_record *record,
                   struct error *err);
int telemetry_instructions(struct telemetry *telemetry, const char *job, uint32_t epoch,
                           const struct instruction_record *records, size_t count,
                           struct error *err);

/* text has text_size bytes, none if that is 0. A record without targets carries text only. */
struct evaluation_record {
    uint64_t step;
    double loss;
    uint64_t targets;
    const void *text;
    size_t text_size;
};
void telemetry_evaluation(struct telemetry *telemetry, const char *job,
                          const struct evaluation_record *record);

/* Results as of traces_add(). Makes room by dropping traces of other jobs. */
int telemetry_trace(struct telemetry *telemetry, const char *job, const struct trace_record *record,
                    struct error *err);

/* Returns the line's revision. */
uint64_t telemetry_line(struct telemetry *telemetry, const char *job, const struct log_line *line);

/* NULL if nothing was reported of the job. */
const struct job_telemetry *telemetry_find(const struct telemetry *telemetry, const char *job);

/* Drop everything about the job; it may be unknown. */
void telemetry_forget(struct telemetry *telemetry, const char *job);

#endif

/* telemetry.h - what jobs report while they run, put together: steps, instructions, log lines.
 *
 * The caller has checked that the job exists; what belongs to an earlier epoch than was seen is
 * refused here. Nothing is stored: after a restart, telemetry begins anew with the next step. */
#ifndef COORDINATOR_TELEMETRY_TELEMETRY_H
#define COORDINATOR_TELEMETRY_TELEMETRY_H

#include "coordinator/telemetry/evaluations.h"
#include "coordinator/telemetry/instructions.h"
#include "coordinator/telemetry/lines.h"
#include "coordinator/telemetry/steps.h"
#include "coordinator/telemetry/traces.h"

#define TELEMETRY_JOB_SIZE 32
/* Times of instructions, of all jobs together; more only while one job alone has more. */
#define TELEMETRY_TRACE_BYTES_MAX ((size_t)64 << 20)

struct telemetry_config {
    size_t lines_max, line_bytes_max; /* of each job */
};

#define TELEMETRY_CONFIG_DEFAULT                                                                   \
    ((struct telemetry_config){.lines_max = 10000, .line_bytes_max = 1 << 20})

/* Lent until the job is forgotten; read it, never write it. */
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

/* The results are those of steps_add and instructions_add; -ESTALE for an earlier epoch. Of
 * several instruction records, those before the refused one are taken. */
int telemetry_step(struct telemetry *telemetry, const char *job, const struct step_record *record,
                   struct error *err);
int telemetry_instructions(struct telemetry *telemetry, const char *job, uint32_t epoch,
                           const struct instruction_record *records, size_t count,
                           struct error *err);

/* Text is of size bytes, none when it is 0; a record without targets is of text alone. */
struct evaluation_record {
    uint64_t step;
    double loss;
    uint64_t targets;
    const void *text;
    size_t text_size;
};
void telemetry_evaluation(struct telemetry *telemetry, const char *job,
                          const struct evaluation_record *record);

/* As traces_add. */
int telemetry_trace(struct telemetry *telemetry, const char *job, const struct trace_record *record,
                    struct error *err);

/* Returns the line's revision. */
uint64_t telemetry_line(struct telemetry *telemetry, const char *job, const struct log_line *line);

/* NULL while nothing was reported of the job. */
const struct job_telemetry *telemetry_find(const struct telemetry *telemetry, const char *job);

/* Its record is not needed any more; unknown jobs are fine. */
void telemetry_forget(struct telemetry *telemetry, const char *job);

#endif

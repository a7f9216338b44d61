/* telemetry.h - what jobs report while they run: steps, instructions, evaluations, traces, log
 * lines.
 *
 * The caller has checked that the job exists; reports of an epoch earlier than one already seen are
 * refused here. Steps, evaluations, samples and sums of instructions know what of them a store has
 * not been told, so that it can keep them; lines and traces are only here. */
#ifndef COORDINATOR_TELEMETRY_TELEMETRY_H
#define COORDINATOR_TELEMETRY_TELEMETRY_H

#include "common/base/error.h"
#include "coordinator/telemetry/measured.h"
#include "coordinator/telemetry/steps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TELEMETRY_JOB_SIZE 32
/* Traces of all jobs together; exceeded only if a single job has more. */
#define TELEMETRY_TRACE_BYTES_MAX ((size_t)64 << 20)

struct telemetry_config {
    size_t lines_max, line_bytes_max; /* per job */
};

#define TELEMETRY_CONFIG_DEFAULT                                                                   \
    ((struct telemetry_config){.lines_max = 10000, .line_bytes_max = 1 << 20})

/* The losses of one job on held-out data, and the newest text sampled from its model. */

#define EVALUATIONS_MAX 10000      /* the newest are kept */
#define EVALUATIONS_TEXT_MAX 65536 /* bytes of a sample; the rest is cut off */

struct evaluation {
    uint64_t step, targets; /* how many tokens the loss is of */
    double loss;
};

/* Initialize to zero. */
struct evaluations {
    struct evaluation *items; /* oldest first */
    size_t count, capacity;
    char *text; /* bytes as received, not terminated; NULL if there is none */
    size_t text_size;
    uint64_t text_step;
    /* What a store has not been told: losses from this step on, 0: none; and the text. */
    uint64_t unsaved_from;
    bool text_unsaved;
};
void evaluations_finish(struct evaluations *evaluations);

/* Add one; copies it. If the job went back to an earlier step, later evaluations are dropped. */
void evaluations_add(struct evaluations *evaluations, const struct evaluation *evaluation);

#define LINES_TEXT_SIZE 4096 /* of a line, including the final NUL; longer ones end in "..." */
#define LINES_NO_RANK (-1)   /* a line of the coordinator itself */

struct log_line {
    uint64_t revision; /* from 1, without gaps */
    int rank;
    uint64_t epoch; /* 0: none */
    uint64_t time_ms;
    const char *level; /* "debug", "info", "warn", "error" or ""; when adding, NULL means "" */
    char *text;        /* printable ASCII and tabs; other bytes were replaced by '?' */
};

/* The newest log lines of one job, numbered, for `gimbal logs`. A reader asks for the lines after
 * the revision it has seen. Lines beyond the limits are dropped, oldest first; a reader that asks
 * for dropped ones is told so and never skips lines silently. */
struct lines;

/* Limits on the number of lines and on the bytes of their texts; the newest line is always kept. */
struct lines *lines_create(size_t count_max, size_t bytes_max);
void lines_destroy(struct lines *lines);

/* Add a line; its text is copied without a final newline. Returns the revision assigned to it. */
uint64_t lines_add(struct lines *lines, const struct log_line *from);

/* The revision to ask for in order to get all lines that are kept. */
uint64_t lines_first(const struct lines *lines);

/* The lines after a revision, oldest first, lent until the next one is added; 0 means from the
 * start. -ERANGE: some of them were dropped, or the revision does not exist yet; the message tells
 * which lines there are. */
int lines_after(const struct lines *lines, uint64_t revision, const struct log_line **out,
                size_t *count, struct error *err);

/* Replace the sampled text by a copy of these bytes. */
void evaluations_set_text(struct evaluations *evaluations, uint64_t step, const void *bytes,
                          size_t size);

/* Lent until the job is forgotten; read-only for callers. */
struct job_telemetry {
    char job[TELEMETRY_JOB_SIZE];
    bool partial;   /* of what a store has, only the window of steps is here */
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

/* Whether a store lacks something of this job, and of any; whether that is more than sums, which a
 * job reports again; and note that it has been told of all of the job. */
bool job_telemetry_unsaved(const struct job_telemetry *job);
bool telemetry_unsaved(const struct telemetry *telemetry);
bool telemetry_owes(const struct telemetry *telemetry);
void telemetry_saved(struct telemetry *telemetry, const char *job);

/* A record of the job, created if there is none, that is to be filled with what a store has: it has
 * nothing of that yet. */
struct job_telemetry *telemetry_restore(struct telemetry *telemetry, const char *job);
/* Keep only the window of steps of what is saved; the rest has to be restored to be seen. Does
 * nothing for a job that is not known, or not saved. */
void telemetry_release(struct telemetry *telemetry, const char *job);

/* NULL if nothing was reported of the job. */
const struct job_telemetry *telemetry_find(const struct telemetry *telemetry, const char *job);

/* Jobs in any order; lent likewise. */
size_t telemetry_count(const struct telemetry *telemetry);
const struct job_telemetry *telemetry_at(const struct telemetry *telemetry, size_t index);

/* Drop everything about the job; it may be unknown. */
void telemetry_forget(struct telemetry *telemetry, const char *job);

#endif

/* progress.h - shows progress: a live line on a terminal, otherwise a line from time to time.
 *
 * Progress goes to stderr, since stdout is for data. On a terminal the line is rewritten in place.
 * If stderr is not a terminal, CI is set, or the terminal is "dumb", whole lines are printed at the
 * start, every PROGRESS_LINE_S seconds, and at the end. Nothing is coloured, so NO_COLOR is
 * respected. */
#ifndef COORDINATOR_CLI_PROGRESS_H
#define COORDINATOR_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "coordinator/planner/planner.h"

#define PROGRESS_LINE_S 5.0
#define PROGRESS_TEXT_SIZE 512

/* Unknown values are 0, NULL or, for losses, NAN, and are omitted. */
struct progress_state {
    const char *name;
    uint64_t step, step_count;
    double loss, heldout_loss;
    double tokens_per_s;
    uint64_t memory_bytes, memory_bytes_max;
    const char *plan; /* as in "p-7f3a pp2·tp2·dp2" */
    double step_time_s;
};

/* As in "gpt2-124m  step 1240/19073  6.5%  loss 4.182  411k tok/s  ..."; returns out. */
char *progress_format(char *out, size_t size, const struct progress_state *state);

struct progress {
    FILE *out;
    bool quiet, live;
    bool drawn; /* a live line is on the cursor's line */
    bool begun;
    double next_s; /* when the next plain line is due */
    char last[PROGRESS_TEXT_SIZE];
    bool last_shown;
};

/* out: a stream that is lent, stderr. */
void progress_open(struct progress *progress, FILE *out, bool quiet);
void progress_update(struct progress *progress, const struct progress_state *state, double now_s);
/* Show progress of something other than training, in its own words. */
void progress_show(struct progress *progress, const char *line, double now_s);
/* Print a permanent line above the live one; characters unsafe for a terminal become '?'. */
void progress_note(struct progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, also if progress is not to be shown. */
void progress_say(struct progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Remove the live line. */
void progress_clear(struct progress *progress);
/* Leave the last state as a permanent line. */
void progress_close(struct progress *progress);

/* The progress of a plan search that takes longer than one would wait in silence. */

struct searching;

/* Start a thread that shows on stderr what the search writes to `progress`. NULL if that is
 * impossible; then nothing is shown. */
struct searching *searching_begin(struct planner_progress *progress);
/* Stop, and remove the line. Accepts NULL. */
void searching_end(struct searching *searching);

#endif

/* progress.h - how far something is: one live line on a terminal, else a line now and then.
 *
 * Progress goes to stderr: stdout is data. On a terminal the line is rewritten in place; where
 * stderr is no terminal, CI is set or the terminal is "dumb", whole lines come at the start,
 * every PROGRESS_LINE_S seconds, and at the end. Nothing is coloured, so NO_COLOR is kept. */
#ifndef COORDINATOR_CLI_FOLLOWING_PROGRESS_H
#define COORDINATOR_CLI_FOLLOWING_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PROGRESS_LINE_S 5.0
#define PROGRESS_TEXT_SIZE 512

/* What is not known is 0, NULL or, of losses, NAN: it is left out. */
struct progress_state {
    const char *name;
    uint64_t step, step_count;
    double loss, heldout_loss;
    double tokens_per_s;
    uint64_t memory_bytes, memory_bytes_max;
    const char *plan; /* "p-7f3a pp2·tp2·dp2" */
    double step_time_s;
};

/* "gpt2-124m  step 1240/19073  6.5%  loss 4.182  411k tok/s  ..."; returns out. */
char *progress_format(char *out, size_t size, const struct progress_state *state);
/* "987", "9.8k", "411k", "1.2M". */
char *progress_format_count(char *out, size_t size, double count);

struct progress {
    FILE *out;
    bool quiet, live;
    bool drawn; /* a live line stands at the cursor */
    bool begun;
    double next_s; /* when the next plain line is due */
    char last[PROGRESS_TEXT_SIZE];
    bool last_shown;
};

/* out: a borrowed stream, stderr. */
void progress_open(struct progress *progress, FILE *out, bool quiet);
void progress_update(struct progress *progress, const struct progress_state *state, double now_s);
/* The same of something else than a training, in its own words. */
void progress_show(struct progress *progress, const char *line, double now_s);
/* A line that stays, above the live one; whatever of it a terminal minds becomes '?'. */
void progress_note(struct progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Nothing of it is worth to stay: the live line is taken away. */
void progress_clear(struct progress *progress);
/* Leaves the last state as a line that stays. */
void progress_close(struct progress *progress);

#endif

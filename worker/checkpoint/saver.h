/* saver.h - checkpoints beside the training: a copy between two steps, the rest by a thread.
 *
 * The copy is host memory that is reserved at the beginning, as much as the rank's shard. A
 * thread writes it. When all ranks have told rank 0 what they wrote, through the epoch's
 * rendezvous, rank 0 writes the manifest, and tells its caller that the checkpoint is staged; it
 * counts only when that one lists it. Every rank saves behind the same steps; a save that is due
 * before the copy of the one before is on the disk waits for it, so that none is left out, but no
 * step waits for a rendezvous or for a list: see teller.h. What cannot be written is told in words
 * and left out: training goes on. */
#ifndef WORKER_CHECKPOINT_SAVER_H
#define WORKER_CHECKPOINT_SAVER_H

#include "worker/checkpoint/state.h"
#include "worker/collectives/collective.h"

struct saver;

/* A checkpoint that is complete, or why there is none. */
struct saver_report {
    uint64_t step;
    const char *name; /* of its folder */
    uint64_t bytes;
    size_t shards;
    double waited_s;     /* the step waited so long for the checkpoint before it */
    const char *failure; /* NULL: it is complete */
};

/* The names of the folders that are listed, each on the heap. */
struct saver_listed {
    char **names;
    size_t count;
};

struct saver_config {
    const char *root;              /* the job's folder; made where it is missing */
    struct manifest_origin origin; /* without a step */
    const struct program *program;
    const struct rendezvous *rendezvous; /* NULL where there is one rank */
    void *context;
    /* Rank 0, on a thread: tell it, and wait until it is listed. *listed is filled then; the
     * checkpoints of this job that are not in it are deleted, unless it is empty. */
    int (*staged)(void *context, const struct saver_report *report, struct saver_listed *listed,
                  struct error *err);
    /* Something went wrong that costs no checkpoint: an old one could not be deleted. (optional) */
    void (*complain)(void *context, const char *words);
    /* Whatever the thread waits for in staged and in the rendezvous shall end, with an error. */
    void (*abandon)(void *context);
};

/* Lent until it is destroyed: program and rendezvous. -ENOBUFS with the size of the copy; what the
 * folder says. */
int saver_create(const struct saver_config *config, struct saver **out, struct error *err);
/* Copy the state behind `step`, unless that was done already; allocates nothing. Errors are those
 * of telling: what it waited for was cancelled. */
int saver_take(struct saver *saver, uint64_t step, state_buffer_cb *buffer, void *context,
               struct error *err);
/* Until all that was taken is written, and listed. */
int saver_finish(struct saver *saver, struct error *err);
/* The same for ranks that all stop behind `step`, which they have taken: none of them returns
 * before it is listed, so that no rank's end is heard of while another still has to write. *listed:
 * false where it could not be written. Once for each step. */
int saver_part(struct saver *saver, uint64_t step, bool *listed, struct error *err);
/* What is not written then is left. Accepts NULL. */
void saver_destroy(struct saver *saver);
/* Of the copy. */
uint64_t saver_bytes(const struct saver *saver);

#endif

/* saver.h - writes checkpoints while training goes on: a copy between two steps, everything else by
 * threads.
 *
 * The copy is host memory, reserved in advance, as large as the rank's shard, from which a thread
 * writes the shard. When all ranks have told rank 0 what they wrote, through the epoch's
 * rendezvous, rank 0 writes the manifest and reports to its caller that the checkpoint is staged. A
 * checkpoint counts only once the other side has listed it.
 *
 * Every rank saves after the same steps. A save that is due while the previous copy is not yet on
 * disk waits for that, so that none is left out; but no step waits for a rendezvous or for a
 * listing. If a checkpoint cannot be written, that is reported and training goes on. After the last
 * step nothing goes on, and the copy is all that there is of the training: it is written again and
 * again, until it is on disk or somebody gives it up.
 *
 * Apart from its own threads, a saver is used by one thread at a time. */
#ifndef WORKER_CHECKPOINT_SAVER_H
#define WORKER_CHECKPOINT_SAVER_H

#include "worker/checkpoint/state.h"
#include "worker/collectives/collective.h"

struct saver;

/* A complete checkpoint, or the reason why there is none. */
struct saver_report {
    uint64_t step;
    const char *name; /* of its folder */
    uint64_t bytes;
    size_t shards;
    double waited_s;     /* how long the step waited for the previous checkpoint */
    bool last;           /* no step follows */
    const char *failure; /* NULL: the checkpoint is complete */
    bool no_space;       /* failed for want of room on a disk */
};

/* What becomes of a last step that could not be saved. */
enum saver_verdict {
    SAVER_AGAIN,
    SAVER_STOP,    /* all ranks stop behind it; somebody else goes on from their memory */
    SAVER_GIVE_UP, /* it is lost */
};

/* Names of the listed folders, each on the heap. */
struct saver_listed {
    char **names;
    size_t count;
};

struct saver_config {
    const char *root;              /* the job's folder; created if missing */
    struct manifest_origin origin; /* its step and samples are ignored; its files are lent */
    uint64_t shift; /* after a step, step * batch + shift samples were used, modulo 2^64 */
    const struct program *program;
    uint64_t last_step;                  /* no step follows on it */
    const struct rendezvous *rendezvous; /* NULL if there is only one rank */
    void *context;
    /* Called on rank 0, on a thread: report a checkpoint, and block until it is listed: 0. Then
     * *listed is filled, and taken; checkpoints of this job that are not in it are deleted, unless
     * it is empty. 1: it is complete, but could not be listed, for the reason that was reported. */
    int (*staged)(void *context, const struct saver_report *report, struct saver_listed *listed,
                  struct error *err);
    /* Called on rank 0, which waits for the last step's checkpoint, when it could not be written or
     * listed. Blocks until it is worth another try; an enum saver_verdict, or a negative errno. */
    int (*unsaved)(void *context, struct error *err); /* (optional) it is given up at once */
    /* Report a problem that costs no checkpoint, such as an old one that could not be deleted.
     * (optional) */
    void (*complain)(void *context, const char *words);
    /* Make whatever the thread waits for, in staged and in the rendezvous, end with an error. */
    void (*abandon)(void *context);
};

/* Create a saver. Program and rendezvous are lent until it is destroyed. -ENOBUFS with the size of
 * the copy; otherwise errors of the folder. */
int saver_create(const struct saver_config *config, struct saver **out, struct error *err);
/* Copy the state after `step`, unless that was done already. Allocates nothing. Fails only if an
 * earlier checkpoint could not be reported because the wait for it was cancelled. */
int saver_take(struct saver *saver, uint64_t step, state_buffer_cb *buffer, void *context,
               struct error *err);
/* Block until everything that was taken is written and listed. Errors as saver_take. */
int saver_finish(struct saver *saver, struct error *err);
/* The same for ranks that all stop after `step`, which they have taken. None of them returns before
 * it is listed, so that nobody hears of one rank's end while another still has to write. *listed is
 * false if it could not be written. Collective; once per step. */
int saver_part(struct saver *saver, uint64_t step, bool *listed, struct error *err);
/* The same for the last step of all, which is not given up so easily: 0 when it is listed; 1 if the
 * ranks are to stop behind it (SAVER_STOP); -ENOTRECOVERABLE, with the reason, if it was given up.
 * Collective; instead of saver_part. */
int saver_last(struct saver *saver, uint64_t step, struct error *err);
/* Destroy the saver; what is not written by then never will be. Accepts NULL. */
void saver_destroy(struct saver *saver);
/* Size of the copy. */
uint64_t saver_bytes(const struct saver *saver);

/* Checks that a folder is the same on all nodes of a job: rank 0 writes a file with a random text,
 * and the others read it. Shards on the disks of several nodes would not be a checkpoint for any of
 * them. */
struct saver_folder {
    const char *folder; /* created if it is missing */
    uint64_t epoch;
    int rank, ranks;
    const char *node, *first; /* names of this rank's node, and of rank 0's */
    const struct rendezvous *rendezvous;
};

/* Collective over all ranks. -EXDEV: this rank does not see what rank 0 wrote; err names node and
 * folder. Otherwise errors of the folder and of the rendezvous. */
int saver_check_folder(const struct saver_folder *test, struct error *err);

#endif

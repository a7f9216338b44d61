/* estate.h - the state of a rank, in memory that outlives its process.
 *
 * The worker creates an unnamed file for each executor and keeps it open too. The executor keeps
 * its state in this file, in holdings: one for the running epoch and, as long as they may be
 * needed, those from which it was moved; and for each epoch up to two copies of its own and other
 * ranks' states. When the process is killed, its successor is given the same file and finds in it
 * which slices there are, after which step, and how far the optimizer had come with the next one.
 *
 * The optimizer changes a state in place, piece by piece. Before a piece is changed, its old
 * contents are written to a journal. So every piece of a holding that was left behind is known to
 * be either before the step or after it; the one in between is restored from the journal, and
 * whoever has the holding can do the rest.
 *
 * One process writes at a time. Its writes are ordered for the case that the process dies, in which
 * all of them survive, but not for a power failure, which loses the file anyway. */
#ifndef WORKER_ESTATE_ESTATE_H
#define WORKER_ESTATE_ESTATE_H

#include "common/base/error.h"
#include "common/graph/box.h"
#include "common/program/program.h"

#define EPOCHS_MAX 4   /* epochs of which one estate may hold something */
#define COPIES_SLOTS 2 /* one is written while the other stays whole */
#define HOLDINGS_MAX 12
#define PIECE_ELEMENTS 16384 /* per piece; a piece and the journal fit in a core's cache */

struct estate;
struct holding;

enum holding_kind {
    HOLDING_STATE,
    HOLDING_COPY, /* of slices of several ranks, as of one step; it is never trained further */
};

/* One slice of a weight. The last four are offsets in the holding's memory, in bytes. */
struct share {
    int tensor;
    struct box box;
    uint64_t master, first, second, gradient;
};

/* How far a state has come. */
struct standing {
    uint64_t epoch, step; /* steps finished, and the epoch that finished the last of them */
    bool has_metrics;
    float metrics[METRICS]; /* of the last finished step */
    /* The gradient of the next step is complete, and this rank's part of its metrics may have
     * reached others, who may have applied the step. */
    bool armed;
    bool applying; /* this rank has begun to apply the next step, with metrics `next` */
    float next[METRICS];
};

/* Open the estate in file `fd`, which is taken; -1: create a file. Contents that are not published,
 * or are of another version, are discarded. Returns 0 or -errno. */
int estate_open(int fd, struct estate **out, struct error *err);
/* The contents stay in the file for as long as somebody else has it open. Accepts NULL. */
void estate_close(struct estate *estate);
/* Take over the holdings that a predecessor left, oldest first; the caller releases or closes each.
 * Returns their number; to be called once, before holding_create. -ENOBUFS: they cannot be
 * mapped. */
int estate_take(struct estate *estate, struct holding *out[HOLDINGS_MAX], struct error *err);

/* Create a holding of `bytes` of zeroed memory, followed by a guard page. A successor does not find
 * it before it is published. -ENOBUFS: no memory; -EBUSY: HOLDINGS_MAX exist already. */
int holding_create(struct estate *estate, enum holding_kind kind, uint64_t bytes,
                   size_t share_count, struct holding **out, struct error *err);
/* Free the holding and its part of the file. Accepts NULL. */
void holding_release(struct holding *holding);
/* Unmap the holding; if it is published, it stays in the file for a successor. */
void holding_close(struct holding *holding);
/* Start of its memory. */
char *holding_memory(const struct holding *holding);
/* Elements at an offset of it, as the last four of struct share. */
float *holding_at(const struct holding *holding, uint64_t bytes);
/* Set which slices the holding has (share_count of them, copied), and the epoch whose program uses
 * it. */
void holding_describe(struct holding *holding, const struct share *shares, uint64_t ran_in);
/* Declare the contents complete and in this standing: a successor finds them from here on. */
void holding_publish(struct holding *holding, const struct standing *standing);
/* Withdraw a holding whose memory does not match its standing for a while, because the state goes
 * on in a device or because another copy is written over it. No successor finds it until it is
 * republished, as it was, or published again. */
void holding_withdraw(struct holding *holding);
void holding_republish(struct holding *holding);
bool holding_published(const struct holding *holding);
enum holding_kind holding_kind(const struct holding *holding);
/* Shares of a holding that has been described; lent. */
const struct share *holding_shares(const struct holding *holding, size_t *count);
/* The epoch given to holding_describe. */
uint64_t holding_ran_in(const struct holding *holding);
/* Lent until the standing changes. */
const struct standing *holding_standing(const struct holding *holding);

/* The stages of a step, in order. First the state is armed: see struct standing. */
void holding_arm(struct holding *holding);
/* Then the step begins to be applied, with these metrics. */
void holding_apply(struct holding *holding, const float metrics[METRICS]);
/* Pieces are changed in order. Returns false if this one has been changed already; otherwise the
 * piece is as before the step, and saved in the journal. */
bool holding_begin_piece(struct holding *holding, size_t share, size_t piece);
/* The piece is as after the step. */
void holding_end_piece(struct holding *holding, size_t share, size_t piece);
/* All of a share is as after the step, in the memory of a device. */
void holding_end_share(struct holding *holding, size_t share);
/* All of the state is: the step is finished, by the holding's epoch. */
void holding_applied(struct holding *holding);

#endif

/* estate.h - the state of a rank, in memory that outlives its process.
 *
 * The worker makes a file without a name for each executor and holds it too; the executor keeps its
 * state in it, in holdings: one for the epoch that runs, and those that this one was moved from, as
 * long as they may be needed; and the copies that it has of its own and of others' states, in two
 * more of each epoch. When the process is killed its successor is given the same file and finds
 * them: which slices, behind which step, and how far the optimizer had come with the next.
 *
 * The optimizer changes a state in place, piece by piece. What a piece was is written to a journal
 * before it is changed; so every piece of a holding that was left is known to be before the step or
 * behind it, the one in between is put back, and whoever has it can do the rest.
 *
 * One process at a time writes, and what it has written is all there when it dies: the order of
 * writes is kept for that, and not for a power cut, which takes the file as well. */
#ifndef WORKER_ESTATE_ESTATE_H
#define WORKER_ESTATE_ESTATE_H

#include "common/base/error.h"
#include "common/graph/shape.h"
#include "common/program/program.h"

#define EPOCHS_MAX 4   /* that one estate has something of */
#define COPIES_SLOTS 2 /* while one is written the other is whole */
#define HOLDINGS_MAX 12
#define PIECE_ELEMENTS 16384 /* so long a piece, and the journal, stay in a core's cache */

#define ESTATE_FD 5 /* of an executor that is started with one */

struct estate;
struct holding;

enum holding_kind {
    HOLDING_STATE,
    HOLDING_COPY, /* of slices of several ranks, as they were behind one step: it never goes on */
};

/* A slice of a weight: where in the holding's memory, in bytes. */
struct share {
    int tensor;
    struct box box;
    uint64_t master, first, second, gradient;
};

struct standing {
    uint64_t epoch, step; /* finished steps, and the epoch that finished the last of them */
    bool has_metrics;
    float metrics[METRICS]; /* of that step */
    /* The gradient of the next one is whole, and this rank's share of its metrics may have reached
     * others, who may have applied it. */
    bool armed;
    bool applying; /* so has this rank begun to, by these metrics */
    float next[METRICS];
};

/* Takes the file; -1: one of its own. What it has is of a predecessor, unless that was of another
 * version: then it is emptied. -errno. */
int estate_open(int fd, struct estate **out, struct error *err);
/* What it has stays in the file. Accepts NULL. */
void estate_close(struct estate *estate);
/* The holdings that were left, each the caller's to release, the oldest first. Returns how many;
 * once. -ENOBUFS. */
int estate_take(struct estate *estate, struct holding *out[HOLDINGS_MAX], struct error *err);

/* Memory of so many bytes, all zero, and a page behind it that faults; nobody finds it before it is
 * published. -ENOBUFS, -EBUSY: there are too many. */
int holding_create(struct estate *estate, enum holding_kind kind, uint64_t bytes,
                   size_t share_count, struct holding **out, struct error *err);
/* Its memory is given back. Accepts NULL. */
void holding_release(struct holding *holding);
/* What is published stays in the file, for a successor. */
void holding_close(struct holding *holding);
char *holding_memory(const struct holding *holding);
/* What there will be in it; of the program of an epoch. */
void holding_describe(struct holding *holding, const struct share *shares, uint64_t ran_in);
/* It is whole, and stands so. */
void holding_publish(struct holding *holding, const struct standing *standing);
/* The state goes on elsewhere, in the memory of a device, or another one is copied here: until it
 * is offered or published again what is here is not what it stands for, and no successor finds it.
 */
void holding_withdraw(struct holding *holding);
void holding_offer(struct holding *holding);
bool holding_published(const struct holding *holding);
enum holding_kind holding_kind(const struct holding *holding);
/* Of one that is described; lent. */
const struct share *holding_shares(const struct holding *holding, size_t *count);
uint64_t holding_ran_in(const struct holding *holding);
/* Lent until it stands otherwise. */
const struct standing *holding_standing(const struct holding *holding);

/* Computing is at this instruction, of so many: nobody needs to know, but anybody may. */
void holding_reach(struct holding *holding, uint32_t instruction, uint32_t count);

/* Of the epoch that runs, in a file that another process has open: at which instruction its
 * computing is, and how many there are. 0, or -ENOENT: nothing runs. */
int estate_watch(int fd, uint32_t *reached, uint32_t *count);

/* The way of a step. It is armed, */
void holding_arm(struct holding *holding);
/* then it is applied by these metrics, */
void holding_apply(struct holding *holding, const float metrics[METRICS]);
/* piece by piece, in order; false: this one is changed already. As it was before the step, */
bool holding_begin_piece(struct holding *holding, size_t share, size_t piece);
/* and behind it; */
void holding_end_piece(struct holding *holding, size_t share, size_t piece);
/* or all of a share at once, in the memory of a device; */
void holding_end_share(struct holding *holding, size_t share);
/* and all of it is behind the step, which its epoch has finished. */
void holding_applied(struct holding *holding);

#endif

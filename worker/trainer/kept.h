/* kept.h - the states that an executor keeps from one epoch of its job to the next, and the copies.
 *
 * Until an epoch has applied its first step its ranks do not know of each other whether all have
 * their new state; so until then the states that it was moved from are kept as well. And the new
 * ones too, where it breaks before that: a rank that is lost in it may have had what was moved
 * from, and others have been given what it alone had. All lie in the executor's estate, and are
 * there for its successor if it is killed. */
#ifndef WORKER_TRAINER_KEPT_H
#define WORKER_TRAINER_KEPT_H

#include "worker/estate/estate.h"
#include "worker/interpreter/update.h"
#include "worker/move/move.h"

/* More come together only where one epoch after the other breaks in its first step. */
#define KEPT_MAX (EPOCHS_MAX - 1)

struct kept_holding {
    struct holding *holding; /* NULL: there is none */
    struct move_slice *slices;
    size_t slice_count;
};

/* What an epoch has left. */
struct kept_epoch {
    uint64_t number;
    struct kept_holding state, copies[COPIES_SLOTS];
};

/* Zeroed to begin with. */
struct kept {
    struct estate *estate;
    bool inherited;                     /* what there is is of the executor before this one */
    struct kept_epoch epochs[KEPT_MAX]; /* the oldest first */
    size_t count;
};

/* Takes the file of the estate, and what a predecessor has left in it: a step that it had begun to
 * apply is finished. Errors of the estate. */
int kept_open(struct kept *kept, int fd, const struct update_rule *rule, struct error *err);
/* Takes a state, which runs no more, or a copy, of the newest epoch that it has something of or of
 * a newer one; where there is no room an older epoch goes. */
void kept_add(struct kept *kept, struct holding *holding);
/* Of a rank that goes into another epoch: what it holds, for move_meet, the states first. Yours, to
 * be freed; lent what it points to. */
struct move_held *kept_describe(const struct kept *kept, size_t *count);
/* Once it was decided what to go on from: apply the step that another rank has. */
void kept_apply(struct kept *kept, const struct move *move, const struct update_rule *rule);
/* They are needed no more. */
void kept_clear(struct kept *kept);
/* What it still keeps stays in the file. Accepts one that was never opened. */
void kept_close(struct kept *kept);

#endif

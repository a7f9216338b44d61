/* kept.h - the states, and copies of states, that an executor keeps from one epoch of its job to
 * the next.
 *
 * The ranks of an epoch do not know that all of them have received their new state until the epoch
 * has applied its first step. Until then the states from which it was moved are kept too. If the
 * epoch breaks before that, the new states are kept as well: the rank that was lost may have held
 * what was moved, and others may have received what only it had.
 *
 * Everything lies in the executor's estate (worker/estate), where a successor finds it if the
 * process is killed. Used by one thread at a time. */
#ifndef WORKER_TRAINER_KEPT_H
#define WORKER_TRAINER_KEPT_H

#include "worker/estate/estate.h"
#include "worker/interpreter/optimizer.h"
#include "worker/move/move.h"

/* States of more epochs would come together only if one epoch after another broke in its first
 * step. */
#define KEPT_MAX (EPOCHS_MAX - 1)

struct kept_holding {
    struct holding *holding; /* NULL: none */
    struct state_slice *slices;
    size_t slice_count;
};

/* What one epoch has left. */
struct kept_epoch {
    uint64_t number;
    struct kept_holding state, copies[COPIES_SLOTS];
};

/* Must be zeroed before kept_open. */
struct kept {
    struct estate *estate;
    bool inherited;                     /* the contents come from an earlier executor's process */
    struct kept_epoch epochs[KEPT_MAX]; /* oldest first */
    size_t count;
};

/* Open the estate in file `fd` (taken; -1: a file of its own), and adopt what a predecessor left in
 * it. A step that it had begun to apply is finished, by `rule`. Errors of the estate. */
int kept_open(struct kept *kept, int fd, const struct update_rule *rule, struct error *err);
/* Add a state that will run no more, or a copy. Takes the holding, which must be of the newest
 * epoch here or of a newer one. If there is no room, an older epoch is dropped. */
void kept_add(struct kept *kept, struct holding *holding);
/* Describe everything that is kept, for move_meet: states first, then copies. The caller frees the
 * array; what it points to is lent until kept changes. */
struct move_held *kept_describe(const struct kept *kept, size_t *count);
/* After the ranks have decided what to continue from: in every state that is armed for it, apply
 * the step that another rank has finished. */
void kept_apply(struct kept *kept, const struct move *move, const struct update_rule *rule);
/* Release everything, because an epoch has applied its first step. */
void kept_clear(struct kept *kept);
/* Close the estate; what is kept stays in its file. Accepts a zeroed `kept`. */
void kept_close(struct kept *kept);

#endif

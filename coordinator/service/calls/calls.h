/* calls.h - what others ask of the coordinator: a file for each kind of call, which ends with the
 * table of its methods. Here are those tables, and what these files do for the rest of service/. */
#ifndef COORDINATOR_SERVICE_CALLS_CALLS_H
#define COORDINATOR_SERVICE_CALLS_CALLS_H

#include "coordinator/service/internal.h"

/* One row per method; tables end with an empty row. */
struct service_handler {
    enum coordinator_method method;
    rpc_handler_cb cb; /* its data argument is the service */
};
extern const struct service_handler worker_handlers[], rank_handlers[], telemetry_handlers[],
    submit_handlers[], user_handlers[], pause_handlers[], checkpoint_handlers[], cluster_handlers[],
    drill_handlers[], history_handlers[], identity_handlers[], trace_handlers[], backup_handlers[];

/* ranks.c: find the job in this epoch, also if it has ended, provided that the caller has that rank
 * of it, or any rank if `rank` is NULL. -ENOENT, -ESTALE. */
int service_find_rank(const struct service *service, struct rpc_call *call, const char *id,
                      uint64_t epoch, const uint32_t *rank, const struct job **out,
                      struct error *err);

/* workers.c: the server's rpc_heard_cb; every call shows that its caller is alive. */
void service_hear(void *service, unsigned roles, const Gimbal__Envelope *envelope);

/* traces.c: take a rank's trace; errors of service_find_rank() and traces_add(). */
int service_take_trace(struct service *service, struct rpc_call *call,
                       const Gimbal__TraceRecord *record, struct error *err);

/* backups.c: a copy of the store that nobody has asked for in a while is let go; when it is to be
 * looked at, UINT64_MAX for never. */
void service_expire_backup(struct service *service);
uint64_t service_backup_next_ms(const struct service *service);

/* checkpoints.c: a rank cannot load the checkpoint of this step, for the reason in `words`. */
void service_damage_checkpoint(struct service *service, const struct job *job, uint64_t step,
                               const char *words);
/* Whether the job saves checkpoints. */
bool service_saves(const struct service *service, const struct job *job);
/* The directory of the job's checkpoints, NULL if it has none; that of its newest listed and
 * undamaged checkpoint, NULL if there is none (the caller frees both); and all listed checkpoints,
 * each released by its free_unpacked(). */
char *service_checkpoint_root(const struct service *service, const struct job *job);
char *service_newest_checkpoint(const struct service *service, const struct job *job);
Gimbal__Checkpoint **checkpoints_to_wire(const struct service *service, const struct job *job,
                                         size_t *count);

/* submit.c: answer those whose job was planned or whose patience is over. */
void service_answer_submitters(struct service *service);
uint64_t service_submitters_next_ms(const struct service *service);

#endif

/* calls.h - what others ask of the coordinator: a file for each of those who ask, which ends with
 * the table of its methods; not for others than service/.
 *
 * What only the state has to be asked or told is handed the state; the rest is handed the service,
 * which adds the door, and what has to be remembered of calls. */
#ifndef COORDINATOR_SERVICE_CALLS_H
#define COORDINATOR_SERVICE_CALLS_H

#include "common/rpc/coordinator_service.h"
#include "common/rpc/records.h"
#include "coordinator/service/door.h"
#include "coordinator/service/service.h"

/* Callers that wait to hear what becomes of the jobs they submitted. */
struct submitters {
    struct submitter {
        struct rpc_call *call;
        char job[JOB_ID_SIZE];
        uint64_t until_ms;
    } * items;
    size_t count, capacity;
};

/* Callers whose reports are not stored yet. */
struct reporters {
    struct reporter {
        struct rpc_call *call;
        uint64_t acknowledged; /* by the answer */
    } * items;
    size_t count, capacity;
};

/* The newest copy of the store that somebody fetches, or has ceased to. */
struct backup {
    uint64_t number; /* of those that were made; 0: none yet */
    uint64_t copied_ms, asked_ms;
    struct store_copy copy;
};

struct service {
    struct state *state;
    struct door door;
    struct rpc_server *server;
    struct identity *identity;
    struct inboxes *inboxes;
    struct submitters submitters;
    struct reporters reporters;
    struct backup backup;
};

/* One row per method; tables end with an empty row. */
struct service_handler {
    enum coordinator_method method;
    rpc_handler_cb cb;
};
/* Their data is the state, */
extern const struct service_handler worker_handlers[], job_handlers[], cluster_handlers[];
/* and the service. */
extern const struct service_handler report_handlers[], submit_handlers[], backup_handlers[],
    identity_handlers[];

/* workers.c: every call shows that its caller is alive. */
void workers_hear(struct state *state, unsigned roles, const Gimbal__Envelope *envelope);

/* reports.c: where the ranks of a worker are, as told with its heartbeat. */
void reports_hear_positions(struct state *state, struct rpc_call *call,
                            const Gimbal__HeartbeatRequest *request);

/* reports.c: store what was measured, if it is time to, and answer those who reported it. */
void reporters_answer(struct service *service);

/* submit.c: answer those whose job was planned or whose patience is over. */
void submitters_answer(struct service *service);
uint64_t submitters_next_ms(const struct service *service);

/* cluster.c: a copy of the store that nobody has asked for in a while is let go; when it is to be
 * looked at, UINT64_MAX for never. */
void backup_expire(struct service *service);
uint64_t backup_next_ms(const struct service *service);

#endif

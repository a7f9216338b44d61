/* askers.h - who waits for a search, and what becomes of what it finds. */
#ifndef COORDINATOR_SERVICE_ASKERS_H
#define COORDINATOR_SERVICE_ASKERS_H

#include "common/rpc/server.h"
#include "coordinator/jobs/jobs.h"
#include "coordinator/planning/queue.h"

struct service;

enum asks {
    ASKS_CALL,    /* a caller, who waits */
    ASKS_JOB,     /* it waits for its plan */
    ASKS_TRIAL,   /* it runs: would it be better off on more devices? */
    ASKS_SPARE,   /* it runs: what if it lost some? */
    ASKS_PICTURE, /* somebody looks at its timeline */
};

/* Who wants a search: a job in an epoch, or a caller. */
struct asker {
    enum asks kind;
    char job[JOB_ID_SIZE];
    uint64_t epoch;
    struct device_ref *devices; /* of a job that runs: on which */
    size_t device_count;
    uint64_t hardware;     /* service->hardware then */
    struct rpc_call *call; /* NULL: a job asks */
    void (*answer_cb)(struct rpc_call *call, const struct planning *planning);
    uint64_t until_ms; /* of a call: then it is answered without a plan */
};

/* One more who waits for a search, to be filled in and handed to the queue. */
struct asker *asker_add(struct service *service, enum asks kind);
/* Hand out the plans that were found, and stop the searches whose plans nobody wants any more. */
void service_take_plans(struct service *service);
/* When service_take_plans has something to do of its own accord; UINT64_MAX for never. */
uint64_t service_plans_next_ms(const struct service *service);
void service_forget_askers(struct service *service);

#endif

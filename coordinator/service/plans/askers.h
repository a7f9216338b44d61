/* askers.h - who waits for a plan search, and what happens to its result. */
#ifndef COORDINATOR_SERVICE_PLANS_ASKERS_H
#define COORDINATOR_SERVICE_PLANS_ASKERS_H

#include "common/rpc/server.h"
#include "coordinator/jobs/jobs.h"
#include "coordinator/planning/queue.h"

struct service;

enum asks {
    ASKS_CALL,    /* a caller waits for the answer */
    ASKS_JOB,     /* a job waits for its plan */
    ASKS_TRIAL,   /* a job runs: would it be better off on more devices? */
    ASKS_SPARE,   /* a job runs: a plan in case it loses devices */
    ASKS_PICTURE, /* somebody wants to see a job's timeline */
};

/* Who wants a search: a job in an epoch, or a caller. */
struct asker {
    enum asks kind;
    char job[JOB_ID_SIZE];
    uint64_t epoch;
    struct device_ref *devices; /* for a running job: the devices to plan for */
    size_t device_count;
    uint64_t hardware;     /* service->hardware at the time of asking */
    struct rpc_call *call; /* NULL if a job asks */
    void (*answer_cb)(struct rpc_call *call, const struct planning *planning);
    uint64_t until_ms; /* of a call: when it is answered without a plan */
};

/* Add an asker, to be filled in and passed to the planning queue. */
struct asker *asker_add(struct service *service, enum asks kind);
/* Deliver the plans that were found, and stop searches that nobody wants any more. */
void service_take_plans(struct service *service);
/* When service_take_plans() next has something to do without a result; UINT64_MAX: never. */
uint64_t service_plans_next_ms(const struct service *service);
/* Frees all askers, when the service closes. */
void service_forget_askers(struct service *service);

#endif

/* asking.h - who waits for a plan, and what becomes of the answer.
 *
 * Searches run on other threads. An answer that comes after the job has moved to another epoch, or
 * after its caller's patience is over, is of use to nobody; the search is stopped as soon as that
 * is known. Who asks says by its kind what it makes of an answer, so nothing here knows them. */
#ifndef COORDINATOR_TURN_ASKING_H
#define COORDINATOR_TURN_ASKING_H

#include "coordinator/turn/state.h"

struct asker;

struct asking_kind {
    enum planning_kind queue; /* whom it has to wait for */
    /* Whether the answer is still wanted. */
    bool (*wanted_cb)(const struct state *state, const struct asker *asker);
    /* Take the answer; what is left in it and in the asker is freed afterwards. */
    void (*take_cb)(struct state *state, struct asker *asker, struct planning_answer *answer);
    /* (optional) The search was stopped, because the answer was not wanted any more. */
    void (*give_up_cb)(struct state *state, struct asker *asker);
};

/* Who wants a search: a job in an epoch, or a caller. */
struct asker {
    const struct asking_kind *kind;
    void *data; /* of the kind */
    char job[JOB_ID_SIZE];
    uint64_t epoch;
    struct device_ref *devices; /* for a running job: the devices to plan for */
    size_t device_count;
    uint64_t hardware;     /* state->hardware at the time of asking */
    struct rpc_call *call; /* NULL if a job asks */
    void (*answer_cb)(struct rpc_call *call, const struct planning *planning);
    uint64_t until_ms; /* of a call: when it is answered without a plan; otherwise UINT64_MAX */
};

/* Initialize to zero. */
struct asking {
    struct asker **items;
    size_t count, capacity;
};
/* When no search runs any more. */
void asking_finish(struct asking *asking);

/* Begin a search. Copies the asker, and owns its devices. Takes the request's job and graph. */
void asking_add(struct state *state, const struct asker *from,
                const struct planning_request *request);
/* An asker of this kind for the job in its epoch, to be filled in further. */
struct asker asking_for(const struct asking_kind *kind, const struct job *job);
/* Whether the job is in the asker's epoch and in this state. */
bool asking_is_in(const struct state *state, const struct asker *asker, enum job_state in);
/* Deliver the plans that were found, and stop searches that nobody wants any more. */
void asking_take(struct state *state);
/* When asking_take() next has something to do without a result; UINT64_MAX: never. */
uint64_t asking_next_ms(const struct state *state);

/* Answer a call by a search on all devices that are alive, as if they were idle. On success
 * answer_cb is called with the plan; on failure the caller gets the error. Takes ownership of
 * config and graph. */
struct dry_plan {
    struct job_config *config;
    struct graph *graph;
    const char *given;   /* (optional) */
    const char *cluster; /* (optional) a cluster file, used instead of the workers that are alive */
    enum planning_cost cost;
    void (*answer_cb)(struct rpc_call *call, const struct planning *planning);
};
void asking_dry(struct state *state, struct rpc_call *call, const struct dry_plan *ask);

#endif

/* plans.h - when plans are searched for, on which devices and for whom, and what is known of the
 * devices, their links and their memory. */
#ifndef COORDINATOR_SERVICE_PLANS_PLANS_H
#define COORDINATOR_SERVICE_PLANS_PLANS_H

#include "coordinator/service/internal.h"

/* pace.c: how long a rank's kernels took, and how long they were predicted to take. */
void service_hear_pace(struct service *service, const struct job *job, size_t rank,
                       double measured_s, double predicted_s);
/* A device's slowdown factor; write the factors to views of devices; drop those of a worker's
 * instance. */
double service_slowdown(const struct service *service, const struct device_ref *ref);
void service_mark_slow(const struct service *service, struct device_view *views, size_t count);
void service_forget_slow(struct service *service, uint64_t instance);

/* links.c: a measurement by a rank; -EINVAL: it is of no link of its plan. */
int service_hear_link(struct service *service, struct rpc_call *call,
                      const Gimbal__LinkRecord *record, struct error *err);
/* Whether the link of this host to others has been measured, for data of devices of this kind; and
 * write such links to views of devices. */
bool service_network(const struct service *service, const char *host, enum hardware_kind kind,
                     struct profile_link *out);
void service_mark_network(const struct service *service, struct device_view *views, size_t count);
void service_forget_network(struct service *service, const char *worker);
void service_finish_network(struct service *service);
/* Whether the ranks of this epoch shall measure their links; and, once it trains, ask whether there
 * is a better plan now that they are known. */
bool service_wants_links(const struct service *service, const struct job *job);
void service_weigh_links(struct service *service, const struct job *job);

/* memory.c: whether the memory of the rank's device is the host's memory. */
bool service_has_host_memory(const struct service *service, const struct job *job, size_t rank);
/* A rank of the job ran out of memory. Returns how many bytes of its device plans may use from now
 * on; 0: all. */
uint64_t service_lower_memory(struct service *service, const struct job *job, size_t rank);
/* Whether the rank's device has as much memory for the job as the plan needs; and write the limits
 * to views of devices. */
bool service_memory_serves(const struct dossier *dossier, const struct plan *plan, int rank,
                           const struct device_ref *device);
void service_mark_scarce(const struct dossier *dossier, struct device_view *views, size_t count);

/* plan.c: parse the job's text and build its graph into the request; -EINVAL: it is no longer
 * understood. */
int service_read_job(const struct job *job, struct planning_request *request, struct error *err);
/* Have the job's epoch planned. The answer is an event of this turn or, when a search has found
 * what service_planned() takes, of a later one. */
void service_plan_job(struct service *service, const struct job *job);
void service_planned(struct service *service, const struct job *job,
                     struct planning_answer *answer);
/* While a job trains, search for a plan of it on these devices; service_take_trial() or
 * service_keep_spare() gets the result. */
void service_plan_beside(struct service *service, enum asks kind, const struct job *job,
                         const struct device_view *devices, size_t count);
/* owned by the caller */
struct device_ref *service_refs(const struct device_view *views, size_t count);

/* spares.c: the job's epoch has finished a step; and devices may have changed. */
void service_begin_spares(struct service *service, const struct job *job);
void service_consider_spares(struct service *service);
/* Devices are not what they were, so plans for them are void. */
void service_forget_spares(struct service *service);
void spares_clear(struct spares *spares);
/* Keep the answer, and take over the asker's devices. */
void service_keep_spare(struct service *service, struct asker *asker,
                        struct planning_answer *answer);
/* Take a prepared plan for exactly the devices granted to the job, owned by the caller; false:
 * there is none. */
bool service_take_spare(struct service *service, const struct job *job, struct planning *out);
/* devices.c: the devices of `all` that the job trains on, and those of a kind that are free,
 * in the order of `all`. Return their number; `out` has room for count. */
size_t service_own_devices(const struct job *job, const struct device_view *all, size_t count,
                           struct device_view *out);
size_t service_free_devices(const struct device_view *all, size_t count, enum hardware_kind kind,
                            struct device_view *out);

/* growth.c: at the end of a turn, if growth_due is set; for a job whose devices have become
 * slower or faster since it was planned; and take the result. */
void service_consider_growth(struct service *service);
void service_plan_again(struct service *service, const struct job *job);
void service_take_trial(struct service *service, const struct job *job,
                        const struct planning_answer *answer);

/* questions.c: answer a call by a search on all devices that are alive. On success answer_cb
 * is called with the plan; on failure the caller gets the error. Takes ownership of config and
 * graph. */
struct question {
    struct job_config *config;
    struct graph *graph;
    const char *given;   /* (optional) */
    const char *cluster; /* (optional) a cluster file, used instead of the workers that are alive */
    enum planning_cost cost;
    void (*answer_cb)(struct rpc_call *call, const struct planning *planning);
};
void service_plan_dry(struct service *service, struct rpc_call *call, const struct question *ask);

#endif

/* planner.h - the fastest way to divide a model over devices that fits their memory.
 *
 * A candidate is a whole plan: it is lowered for every rank, its reservation is its memory, and
 * its time is that of the simulated step under the devices' profiles. Searches are a family:
 * one file in searches/, one row in searches.c. Pure: no clock, no I/O. */
#ifndef COORDINATOR_PLANNER_PLANNER_H
#define COORDINATOR_PLANNER_PLANNER_H

#include "common/config/job.h"
#include "common/plan/plan.h"
#include "common/profile/profile.h"

#include <stdatomic.h>

struct planner_device {
    const char *name; /* "node-a/0" */
    const char *host; /* the same for devices of one machine */
    uint64_t memory_bytes;
    const struct profile *profile;
    uint64_t library_bytes; /* of its memory: what its libraries take beside a rank's program */
    bool ran_out; /* memory_bytes is less than it has: a rank of the job ran out of memory there */
    /* Of what lies in the host's memory, to other hosts; zeroed: as the profile's network. */
    struct profile_link host_network;
};

/* How far a search is, for another thread to show: searches write, it reads. */
struct planner_progress {
    atomic_size_t work;    /* programs of plans, or of their parts, that were priced */
    _Atomic double best_s; /* of the best so far: a step, as the search reckons; 0: none yet */
};

struct planner_request {
    const struct graph *graph;
    const struct job_config *job; /* batch, limits, pins, the search */
    /* Devices that may be used, those of one host next to each other. */
    const struct planner_device *devices;
    int device_count;
    const atomic_bool *stop; /* (optional) set by another thread: the answer is not wanted */
    struct planner_progress *progress; /* (optional) */
    bool hurry; /* somebody stands still meanwhile: a search may look at less */
    bool any;   /* does anything fit? A search may answer with the first plan that does */
};

/* Is the answer no longer wanted? Searches ask in their loops and break off where they are. */
bool planner_stopped(const struct planner_request *request);
/* For those who price programs, and who compare plans. */
void planner_tell_work(const struct planner_request *request);
void planner_tell_best(const struct planner_request *request, double best_s);

struct candidate {
    struct plan *plan; /* predicted values filled in */
    bool fits;         /* the memory of every rank's device, or job's plan.memory */
    int tight_rank;    /* if not: the first that does not, and what it takes; -1: not known */
    uint64_t tight_bytes;
    bool polished; /* its neighbours were tried, or that is where it comes from */
};

struct planner_result {
    struct plan *best;            /* of candidates[0]; lent */
    struct candidate *candidates; /* what was looked at: those that fit first, fastest first */
    size_t count, capacity;
    size_t looked_at; /* if more than candidates: plans and groups of plans that were judged */
};

struct search {
    const char *name;
    /* Append candidates. -EINVAL: nothing can be divided as the job demands; the sentence is of
     * the last thing that was tried. */
    int (*run)(const struct planner_request *request, struct planner_result *out,
               struct error *err);
};

extern const struct search *const searches[]; /* the best first; ends with NULL */
const struct search *search_find(const char *name);
/* That of the job, or where it names none the first. -EINVAL, naming those there are. */
int planner_search(const struct job_config *job, const struct search **out, struct error *err);

/* The graph of a job's model. */
int planner_graph(const struct job_config *job, struct graph **out, struct error *err);
/* Whether every node finds the job's data in the same place. -EINVAL: a path counts from whatever
 * folder a worker was started in. */
int planner_places(const struct job_config *job, struct error *err);
/* -ENOSYS: it can be planned, and not be trained yet; the sentence says what is missing. */
int planner_runs(const struct job_config *job, const struct graph *graph, struct error *err);
/* What the job asks for or forbids by a name has to be something there is: the search, the
 * schedule, roles. -EINVAL in words that begin with the key. */
int planner_names(const struct job_config *job, struct error *err);
/* What no devices would make right: -EINVAL where the model or one of the names is none. */
int planner_check(const struct job_config *job, struct error *err);

/* 0: result->best is the answer. -ENOSPC: candidates, but none fits; the sentence names the
 * smallest change that would do. -EINVAL: a name is none, or no legal plan. -ECANCELED: it was
 * stopped. The result is the caller's to finish, also after -ENOSPC and -ECANCELED. */
int planner_run(const struct planner_request *request, struct planner_result *out,
                struct error *err);
/* The same with this plan in place of a search; its ranks run on the devices that it names.
 * -ESTALE: they are not there. -EINVAL: it is none of the model's, or for another batch. Takes the
 * plan. */
int planner_given(const struct planner_request *request, struct plan *plan,
                  struct planner_result *out, struct error *err);
/* The planner numbers ranks by the order of devices: fills devices (as many as the request has)
 * with those that the plan names, in the order of its ranks. -ESTALE: they are not there. */
int planner_order(const struct planner_request *request, const struct plan *plan,
                  struct planner_device *devices, struct error *err);
void planner_result_finish(struct planner_result *result);

/* The numbers of devices that the job may have of those there are. */
void planner_limits(const struct planner_request *request, int *least, int *most);
/* Price one plan and append it; what was predicted of it before is forgotten. -EINVAL: it is for
 * more devices or another batch, or it cannot be lowered or priced. Takes the plan. */
int planner_consider(const struct planner_request *request, struct plan *plan,
                     struct planner_result *out, struct error *err);

#define PLANNER_TIGHT_SIZE 384
/* "2.1 GiB on node-b/0, where 1.7 GiB may be used (plan.memory)": of the first rank of a plan that
 * does not fit whose device is too small, and why it is where it is not the device's own size. */
char *planner_print_tight(const struct planner_request *request, const struct candidate *candidate,
                          char *out, size_t size);

/* Fills the predicted balance of the stages from their times and bytes. */
void planner_balance(struct plan *plan);
/* What planner_consider does besides: the plan's id and its ranks' devices, by their order; and
 * one candidate more. */
void planner_name(const struct planner_request *request, struct plan *plan);
void planner_add(struct planner_result *out, const struct candidate *candidate);

/* The table of candidates, `rows` of them (0: all), for people. */
void planner_print(const struct planner_result *result, size_t rows, FILE *out);

#endif

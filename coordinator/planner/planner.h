/* planner.h - finds the fastest way to divide a model over devices within their memory.
 *
 * A candidate is a complete plan. It is lowered to one program per rank; the largest reservation of
 * these programs is its memory, and the simulated step under the devices' profiles is its time.
 * Searches form a family: one file each in searches/, one row each in searches.c.
 *
 * The planner is pure: it reads no clock and does no I/O. */
#ifndef COORDINATOR_PLANNER_PLANNER_H
#define COORDINATOR_PLANNER_PLANNER_H

#include "common/config/job.h"
#include "common/plan/plan.h"
#include "common/profile/profile.h"
#include "coordinator/planner/safety.h"

#include <stdatomic.h>

struct planner_device {
    const char *name; /* "node-a/0" */
    const char *host; /* equal for devices of the same machine */
    uint64_t memory_bytes;
    const struct profile *profile; /* as if it had its cores for itself */
    /* part of memory_bytes: what the device's libraries occupy besides a rank's program */
    uint64_t library_bytes;
    /* The cores that it shares with other devices of its host, as in "0-3,8": those whose cores
     * overlap slow each other down if a plan uses both; see shared_cores.h. NULL: it shares none */
    const char *cores;
    double others;   /* ranks of other jobs on its cores, on average over them */
    bool own_memory; /* not the host's; what a rank has in it is lost with the rank's executor */
    uint64_t host_bytes; /* host memory for a rank there; 0: unknown */
    bool ran_out; /* memory_bytes was lowered because a rank of this job ran out of memory there */
    /* Speed to other hosts for data that lies in host memory. All zero: use the profile's
     * network. */
    struct profile_link host_network;
};

/* Progress of a search, written by the searching thread and read by any other. */
struct planner_progress {
    atomic_size_t work; /* programs priced so far, of whole plans or of parts of plans */
    /* step time of the best plan so far, by the search's own cost model; 0: none yet */
    _Atomic double best_s;
};

struct shared_cores;

struct planner_request {
    const struct graph *graph;
    const struct job_config *job; /* batch size, limits, pins, choice of search */
    /* Devices that may be used. Devices of one host must be adjacent. */
    const struct planner_device *devices;
    int device_count;
    /* (optional) another thread sets it when the answer is no longer wanted */
    const atomic_bool *stop;
    struct planner_progress *progress; /* (optional) */
    bool hurry; /* work is stalled until there is a plan: the search may examine less */
    /* only whether anything fits is asked: the search may stop at the first plan that does */
    bool any;
};

/* Whether the answer is no longer wanted. Searches poll this in their loops and stop at once. */
bool planner_stopped(const struct planner_request *request);
/* Report progress: one more program priced; a plan found whose step takes best_s seconds. Both do
 * nothing if the request has no progress. */
void planner_tell_work(const struct planner_request *request);
void planner_tell_best(const struct planner_request *request, double best_s);

struct candidate {
    struct plan *plan; /* owned; its predicted values are filled in */
    bool fits;      /* within the memory of every rank's device, and within the job's plan.memory */
    int tight_rank; /* if it does not fit: the first rank that exceeds its limit; -1: not known */
    uint64_t tight_bytes; /* what that rank needs; only if tight_rank is known */
    bool polished;        /* its neighbours have been tried, or it was found by trying neighbours */
};

struct planner_result {
    /* candidates[0].plan, lent; set only if planner_run() or planner_given() returns 0 */
    struct plan *best;
    struct safety safety; /* what a lost node would cost with `best` */
    /* After the best those that fit, ordered by the job's objective without the time of copies. */
    struct candidate *candidates;
    size_t count, capacity;
    /* plans and groups of plans that were judged; meaningful if more than count */
    size_t looked_at;
};

struct search {
    const char *name;
    /* Append candidates to `out`. -EINVAL: no division satisfies the job's demands; the message
     * tells of the last one tried. */
    int (*run)(const struct planner_request *request, struct planner_result *out,
               struct error *err);
};

extern const struct search *const searches[]; /* in order of preference; ends with NULL */
/* The search of this name; NULL if there is none. */
const struct search *search_find(const char *name);
/* The search that the job names, or the first one if it names none. -EINVAL if there is no such
 * search; the message lists the known ones. */
int planner_search(const struct job_config *job, const struct search **out, struct error *err);

/* Build the graph of the job's model. The caller owns *out. -EINVAL if checkpoint.dir or
 * model.weights is a relative path; otherwise errors of model_build(). */
int planner_graph(const struct job_config *job, struct graph **out, struct error *err);
/* Check that every node finds the job's data in the same place. -EINVAL for a relative path, which
 * would depend on the directory a worker was started in. */
int planner_places(const struct job_config *job, struct error *err);
/* Check that the job can be trained. -ENOSYS: it can be planned but not trained yet; the message
 * says what is missing. */
int planner_runs(const struct job_config *job, const struct graph *graph, struct error *err);
/* Check the names in the job: the search, the schedule, and forbidden roles must exist. -EINVAL;
 * the message begins with the key. */
int planner_names(const struct job_config *job, struct error *err);
/* Check what no choice of devices could put right: the model and the names. -EINVAL. */
int planner_check(const struct job_config *job, struct error *err);

/* Search as the job demands. On success result->best is the answer.
 *
 * -EINVAL: an unknown name, or no legal plan. -ENOSPC: there are candidates, but none fits; the
 * message names the smallest change that would help. -ECANCELED: stopped. The caller finishes the
 * result in every case; after -ENOSPC and -ECANCELED it may hold candidates. */
int planner_run(const struct planner_request *request, struct planner_result *out,
                struct error *err);
/* Judge this plan instead of searching; its ranks run on the devices that it names. -ESTALE: some
 * of them are not in the request. -EINVAL: the plan does not match the model or the global batch.
 * -ENOSPC: it does not fit. Takes ownership of the plan, and the caller finishes the result, in
 * every case. */
int planner_given(const struct planner_request *request, struct plan *plan,
                  struct planner_result *out, struct error *err);
/* The planner places rank r on device r of a request. *out: the devices that the plan names, in
 * rank order, as they are while it uses exactly these; finished by the caller in any case. -ESTALE
 * if one is missing or there are too few. */
int planner_order(const struct planner_request *request, const struct plan *plan,
                  struct shared_cores *out, struct error *err);
/* Destroys the candidates and zeroes the result. */
void planner_result_finish(struct planner_result *result);

/* The least and the greatest number of devices that the job may use, of those in the request. */
void planner_limits(const struct planner_request *request, int *least, int *most);
/* Lower, simulate and append one plan, with the devices' profiles as they are (`cores` is not
 * looked at). Earlier predictions in it are discarded. -EINVAL: it needs
 * more devices than there are, is for another global batch, or cannot be lowered or priced. Takes
 * ownership of the plan, also on failure. */
int planner_consider(const struct planner_request *request, struct plan *plan,
                     struct planner_result *out, struct error *err);

#define PLANNER_TIGHT_SIZE 384
/* Describe why a candidate does not fit, by the first rank whose device is too small: "2.1 GiB on
 * node-b/0, where 1.7 GiB may be used (plan.memory)". The words in parentheses appear where the
 * limit is not the size of the device itself. PLANNER_TIGHT_SIZE bytes suffice; returns out. */
char *planner_print_tight(const struct planner_request *request, const struct candidate *candidate,
                          char *out, size_t size);

/* Set the plan's predicted balance in time and in memory from its stages' time_s and
 * memory_bytes. */
void planner_balance(struct plan *plan);
/* Two steps of planner_consider() for callers that judge plans otherwise: planner_name() assigns
 * device r to rank r and computes the plan's id; planner_add() appends a candidate, whose plan then
 * belongs to the result. */
void planner_name(const struct planner_request *request, struct plan *plan);
void planner_add(struct planner_result *out, const struct candidate *candidate);

/* Print the candidates as a table for people; at most `rows` of them, 0 for all. */
void planner_print(const struct planner_result *result, size_t rows, FILE *out);

#endif

/* request.h - what the planner is asked: a job, its graph, the devices that there are, where to
 * tell how far a search has come, and when to stop. */
#ifndef COORDINATOR_PLANNER_COSTS_REQUEST_H
#define COORDINATOR_PLANNER_COSTS_REQUEST_H

#include "common/config/job.h"
#include "common/graph/graph.h"
#include "common/profile/profile.h"

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
    struct hardware_link host_network;
};

/* Progress of a search, written by the searching thread and read by any other. */
struct planner_progress {
    atomic_size_t work; /* programs priced so far, of whole plans or of parts of plans */
    /* step time of the best plan so far, by the search's own cost model; 0: none yet */
    _Atomic double best_s;
};

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

/* The least and the greatest number of devices that the job may use, of those in the request. */
void planner_limits(const struct planner_request *request, int *least, int *most);
/* The memory of a device of the request, limited by the job's plan.memory. */
uint64_t planner_memory_limit(const struct planner_request *request, int device);

bool hosts_same(const struct planner_device *a, const struct planner_device *b);
/* The number of these devices on each of their hosts, where devices of one host are adjacent; 0: it
 * is not the same on all. */
int hosts_share(const struct planner_device *devices, int count);

#endif

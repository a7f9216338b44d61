/* safety.c - weighs what each rank has and alone has. Memory and messages of copies are as
 * worker/move makes them: each rank copies all of its state, twice, and sends what it alone has to
 * its neighbour, which has room for two of these. */
#include "coordinator/planner/costs/safety.h"

#include "common/base/memory.h"
#include "common/program/lower.h"
#include "common/program/redundancy.h"
#include "coordinator/planner/costs/request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STATE_PARTS 3 /* a weight and its moments */
#define COPIES 2
/* Until they are measured: from an accelerator's memory to pinned host memory over 16 lanes of PCIe
 * 4.0, and from there to other host memory on one core. */
#define FETCH_BYTES_PER_S 20e9
#define HOST_COPY_BYTES_PER_S 10e9

struct ranks {
    const struct planner_request *request;
    const struct plan *plan;
    struct redundancy sole;
    int count;
    const struct planner_device *devices; /* [rank] */
    uint64_t *state_bytes, *sole_bytes;   /* [rank]: of its state, and of what it alone has */
};

/* The nodes of a plan's ranks: a node is a worker, of which a host may have several that die one at
 * a time. The caller frees the array, and [0], where all names are. */
static char **name_nodes(const struct plan *plan)
{
    int ranks = plan_ranks(plan);
    size_t size = 0;
    for (int rank = 0; rank < ranks; rank++)
        size += strlen(plan_device(plan, rank)) + 1;
    char **nodes = xcalloc((size_t)ranks, sizeof *nodes), *next = xcalloc(size, 1);
    for (int rank = 0; rank < ranks; rank++) {
        const char *device = plan_device(plan, rank);
        size_t length = strcspn(device, "/");
        memcpy(next, device, length);
        nodes[rank] = next;
        next += length + 1;
    }
    return nodes;
}

static void safety_weigh(struct ranks *ranks, int tensor)
{
    const struct storage *weight = &ranks->sole.storage[tensor];
    if (weight->stage < 0)
        return;
    const struct mesh *mesh = &ranks->plan->stages[weight->stage].mesh;
    int first = plan_stage_rank(ranks->plan, weight->stage);
    for (int rank = first; rank < first + mesh_count(mesh); rank++) {
        struct box box = placement_slice(mesh, &weight->shape, &weight->placement, rank - first);
        uint64_t bytes = (uint64_t)box_count(&box) * STATE_PARTS * ELEMENT_BYTES;
        ranks->state_bytes[rank] += bytes;
        ranks->sole_bytes[rank] += redundancy_only_copy(&ranks->sole, rank, tensor) ? bytes : 0;
    }
}

/* Copies go from host memory to host memory, wherever programs keep their data. */
static const struct hardware_link *link_to(const struct planner_device *device, const char *host)
{
    if (strcmp(device->host, host) == 0)
        return &device->profile->host;
    return device->host_network.seconds_per_byte > 0 ? &device->host_network
                                                     : &device->profile->network;
}

static double send_s(const struct hardware_link *link, double bytes)
{
    return ceil(bytes / REDUNDANCY_MESSAGE_BYTES) * link->latency_s +
           bytes * link->seconds_per_byte;
}

/* Seconds to copy all of a rank's state, to and from host memory. */
static double own_copy_s(const struct planner_device *device, double bytes)
{
    if (!device->own_memory)
        return 2 * bytes * device->profile->seconds_per_byte;
    return bytes / FETCH_BYTES_PER_S + bytes / HOST_COPY_BYTES_PER_S;
}

/* By how much a step takes longer on a rank that copies its state beside it: `own_s` from memory to
 * memory, and `sent_s` to its neighbour. Cores that compute have to copy as well; an accelerator
 * leaves that to others. What is sent slows down computing as other messages do, and while
 * computing waits it may take the link from messages that are waited for. What is left when the
 * step has ended is waited for. */
static double added_s(const struct ranks *ranks, const struct planner_device *device, double own_s,
                      double sent_s)
{
    double step_s = ranks->plan->predicted.step_time_s;
    double slows = fmax(device->profile->overlap - 1, 0);
    double takes = fmax(slows, ranks->plan->predicted.bubble);
    double own_beside_s = device->own_memory ? fmin(own_s, step_s) : 0;
    double sent_beside_s = fmin(sent_s, step_s - own_beside_s);
    return own_s - own_beside_s * (1 - slows) + sent_s - sent_beside_s * (1 - takes);
}

/* Host memory that a rank needs without copies: its program or, if that is in a device's own
 * memory, an image of the state. */
static uint64_t host_need(const struct ranks *ranks, int rank)
{
    int inside, stage = plan_rank_stage(ranks->plan, rank, &inside);
    return ranks->devices[rank].own_memory ? ranks->state_bytes[rank]
                                           : ranks->plan->stages[stage].memory_bytes;
}

static bool has_room(const struct ranks *ranks, int rank, uint64_t copies)
{
    uint64_t room = ranks->devices[rank].host_bytes;
    return room == 0 || host_need(ranks, rank) + copies <= room;
}

static void safety_price(const struct ranks *ranks, struct safety *out)
{
    uint64_t *held = xcalloc((size_t)ranks->count, sizeof *held);
    for (int rank = 0; rank < ranks->count; rank++) {
        int neighbour = redundancy_neighbour(&ranks->sole, rank);
        const struct planner_device *device = &ranks->devices[rank];
        const struct hardware_link *link = link_to(device, ranks->devices[neighbour].host);
        double own_s = own_copy_s(device, (double)ranks->state_bytes[rank]), sent_s = 0;
        if (ranks->sole_bytes[rank] > 0)
            sent_s = send_s(link, (double)ranks->sole_bytes[rank]);
        out->copy_s = fmax(out->copy_s, added_s(ranks, device, own_s, sent_s));
        held[rank] += COPIES * ranks->state_bytes[rank];
        held[neighbour] += COPIES * ranks->sole_bytes[rank];
    }
    for (int rank = 0; rank < ranks->count; rank++) {
        out->copy_bytes = held[rank] > out->copy_bytes ? held[rank] : out->copy_bytes;
        out->no_room = out->no_room || !has_room(ranks, rank, held[rank]);
    }
    free(held);
}

/* As many steps as keep copies within their share of the time. */
static uint64_t find_interval(const struct ranks *ranks, double copy_s)
{
    const struct job_elastic *elastic = &ranks->request->job->elastic;
    double share_s = elastic->copy_share * ranks->plan->predicted.step_time_s;
    double steps = share_s > 0 ? ceil(copy_s / share_s) : 1;
    double most = (double)ranks->request->job->train.steps;
    steps = fmin(fmax(steps, (double)elastic->copy_every), fmax(most, 1));
    return (uint64_t)steps;
}

static enum safety_kind find_kind(struct ranks *ranks)
{
    uint64_t sole = 0;
    for (size_t t = 0; t < ranks->request->graph->tensor_count; t++)
        safety_weigh(ranks, (int)t);
    for (int rank = 0; rank < ranks->count; rank++)
        sole += ranks->sole_bytes[rank];
    if (sole == 0)
        return ranks->sole.single ? SAFETY_CHECKPOINT : SAFETY_REPLICAS;
    const struct job_elastic *elastic = &ranks->request->job->elastic;
    return elastic->copy_every > 0 && elastic->replan ? SAFETY_COPIES : SAFETY_CHECKPOINT;
}

static struct safety safety_analyse(struct ranks *ranks)
{
    struct safety safety = {.kind = SAFETY_CHECKPOINT, .single = ranks->sole.single};
    if (!redundancy_matters(&ranks->sole, !ranks->devices[0].own_memory))
        return safety;
    safety.kind = find_kind(ranks);
    if (safety.kind == SAFETY_COPIES)
        safety_price(ranks, &safety);
    if (safety.no_room)
        safety.kind = SAFETY_CHECKPOINT;
    else if (safety.kind == SAFETY_COPIES)
        safety.copy_every = find_interval(ranks, safety.copy_s);
    return safety;
}

struct safety safety_of(const struct planner_request *request, const struct plan *plan)
{
    size_t count = (size_t)plan_ranks(plan);
    struct safety safety = {.kind = SAFETY_UNKNOWN};
    struct ranks ranks = {
        .request = request,
        .plan = plan,
        .count = (int)count,
        .devices = request->devices,
        .state_bytes = xcalloc(count, sizeof *ranks.state_bytes),
        .sole_bytes = xcalloc(count, sizeof *ranks.sole_bytes),
    };
    char **nodes = name_nodes(plan);
    if (redundancy_find(request->graph, plan, (const char *const *)nodes, &ranks.sole, NULL) == 0)
        safety = safety_analyse(&ranks);
    redundancy_finish(&ranks.sole);
    free(nodes[0]);
    free(nodes);
    free(ranks.state_bytes);
    free(ranks.sole_bytes);
    return safety;
}

double safety_seconds(const struct safety *safety)
{
    return safety->kind == SAFETY_COPIES ? safety->copy_s / (double)safety->copy_every : 0;
}

const char *safety_name(enum safety_kind kind)
{
    static const char *const names[] = {
        [SAFETY_UNKNOWN] = "",
        [SAFETY_REPLICAS] = "replicas",
        [SAFETY_COPIES] = "copies",
        [SAFETY_CHECKPOINT] = "checkpoint",
    };
    return names[kind];
}

/* safety.c - compares where every slice of the state is with the nodes of its ranks. Memory and
 * messages of copies are as worker/move makes them: each rank copies all of its state, twice, and
 * sends what it alone holds to the next rank on another node, which has room for two of these. */
#include "coordinator/planner/safety.h"

#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/planner.h"

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
    bool single; /* all on one node */
    int count;
    const struct planner_device **devices; /* [rank] */
    uint64_t *state, *sole;                /* [rank]: bytes; of them, what it alone holds */
};

/* A rank's device, named by the planner; mostly they are in the order of ranks. */
static const struct planner_device *find_device(const struct planner_request *request,
                                                const char *name, int rank)
{
    int count = request->device_count, i = 0;
    while (i < count - 1 && strcmp(request->devices[(rank + i) % count].name, name) != 0)
        i++;
    return &request->devices[(rank + i) % count];
}

/* A node is a worker: several may share a host and die one at a time. */
static bool same_node(const struct plan *plan, int a, int b)
{
    const char *first = plan_device(plan, a), *second = plan_device(plan, b);
    size_t length = strcspn(first, "/");
    return length == strcspn(second, "/") && strncmp(first, second, length) == 0;
}

static bool on_one_node(const struct plan *plan)
{
    int ranks = plan_ranks(plan), rank = 1;
    while (rank < ranks && same_node(plan, 0, rank))
        rank++;
    return rank == ranks;
}

/* Whether the loss that copies are made for takes both. */
static bool lost_together(const struct ranks *ranks, int a, int b)
{
    return ranks->single ? a == b : same_node(ranks->plan, a, b);
}

/* Of a tensor that is split along these axes of the stage's mesh: alone[inside] is whether all
 * ranks with the same slice are lost together. */
static void find_alone(const struct ranks *ranks, int stage, unsigned split, bool *alone)
{
    const struct mesh *mesh = &ranks->plan->stages[stage].mesh;
    int first = plan_stage_rank(ranks->plan, stage), count = mesh_span(mesh, ~split);
    int *members = xcalloc((size_t)count, sizeof *members);
    bool *known = xcalloc((size_t)mesh_count(mesh), sizeof *known);
    for (int inside = 0; inside < mesh_count(mesh); inside++) {
        bool together = true;
        if (known[inside])
            continue;
        mesh_group(mesh, inside, ~split, members);
        for (int i = 0; i < count; i++)
            together = together && lost_together(ranks, first + members[0], first + members[i]);
        for (int i = 0; i < count; i++) {
            known[members[i]] = true;
            alone[members[i]] = together;
        }
    }
    free(known);
    free(members);
}

/* Add a weight to what its ranks have. `alone` is of its stage and of the axes that split it:
 * [inside] whether that rank alone has its slice. */
static void weigh(struct ranks *ranks, const struct storage *weight, const bool *alone)
{
    const struct mesh *mesh = &ranks->plan->stages[weight->stage].mesh;
    int first = plan_stage_rank(ranks->plan, weight->stage);
    for (int inside = 0; inside < mesh_count(mesh); inside++) {
        struct box box = placement_slice(mesh, &weight->shape, &weight->placement, inside);
        uint64_t bytes = (uint64_t)box_count(&box) * STATE_PARTS * ELEMENT_BYTES;
        ranks->state[first + inside] += bytes;
        ranks->sole[first + inside] += alone[inside] ? bytes : 0;
    }
}

/* All weights of a stage; those that are split along the same axes are alone on the same ranks. */
static void weigh_stage(struct ranks *ranks, const struct storage *weights, int stage)
{
    size_t ways = (size_t)1 << AXES_MAX;
    int count = mesh_count(&ranks->plan->stages[stage].mesh);
    bool **alone = xcalloc(ways, sizeof *alone);
    for (size_t t = 0; t < ranks->request->graph->tensor_count; t++) {
        if (weights[t].stage != stage)
            continue;
        unsigned split = placement_split_axes(&weights[t].placement);
        if (!alone[split]) {
            alone[split] = xcalloc((size_t)count, sizeof **alone);
            find_alone(ranks, stage, split, alone[split]);
        }
        weigh(ranks, &weights[t], alone[split]);
    }
    for (size_t i = 0; i < ways; i++)
        free(alone[i]);
    free(alone);
}

static int neighbour_of(const struct ranks *ranks, int rank)
{
    for (int i = 1; i < ranks->count; i++)
        if (!lost_together(ranks, rank, (rank + i) % ranks->count))
            return (rank + i) % ranks->count;
    return (rank + 1) % ranks->count;
}

/* Copies go from host memory to host memory, wherever programs keep their data. */
static const struct profile_link *link_to(const struct planner_device *device, const char *host)
{
    if (strcmp(device->host, host) == 0)
        return &device->profile->host;
    return device->host_network.seconds_per_byte > 0 ? &device->host_network
                                                     : &device->profile->network;
}

/* Seconds to copy all of a rank's state, to and from host memory. */
static double own_copy_s(const struct planner_device *device, double bytes)
{
    if (!device->own_memory)
        return 2 * bytes * device->profile->seconds_per_byte;
    return bytes / FETCH_BYTES_PER_S + bytes / HOST_COPY_BYTES_PER_S;
}

/* Host memory that a rank needs without copies: its program or, if that is in a device's own
 * memory, an image of the state. */
static uint64_t host_need(const struct ranks *ranks, int rank)
{
    int inside, stage = plan_rank_stage(ranks->plan, rank, &inside);
    return ranks->devices[rank]->own_memory ? ranks->state[rank]
                                            : ranks->plan->stages[stage].memory_bytes;
}

static bool has_room(const struct ranks *ranks, int rank, uint64_t copies)
{
    uint64_t room = ranks->devices[rank]->host_bytes;
    return room == 0 || host_need(ranks, rank) + copies <= room;
}

static void price(const struct ranks *ranks, struct safety *out)
{
    uint64_t *held = xcalloc((size_t)ranks->count, sizeof *held);
    for (int rank = 0; rank < ranks->count; rank++) {
        int neighbour = neighbour_of(ranks, rank);
        const struct planner_device *device = ranks->devices[rank];
        const struct profile_link *link = link_to(device, ranks->devices[neighbour]->host);
        double seconds = own_copy_s(device, (double)ranks->state[rank]);
        if (ranks->sole[rank] > 0)
            seconds += link->latency_s + (double)ranks->sole[rank] * link->seconds_per_byte;
        out->copy_s = seconds > out->copy_s ? seconds : out->copy_s;
        held[rank] += COPIES * ranks->state[rank];
        held[neighbour] += COPIES * ranks->sole[rank];
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
    const struct graph *graph = ranks->request->graph;
    struct storage *weights = xcalloc(graph->tensor_count, sizeof *weights);
    if (lower_storage(graph, ranks->plan, weights, NULL) < 0) {
        free(weights);
        return SAFETY_UNKNOWN;
    }
    for (int stage = 0; stage < ranks->plan->stage_count; stage++)
        weigh_stage(ranks, weights, stage);
    free(weights);
    for (int rank = 0; rank < ranks->count; rank++)
        sole += ranks->sole[rank];
    if (sole == 0)
        return ranks->single ? SAFETY_CHECKPOINT : SAFETY_REPLICAS;
    bool copies = ranks->count > 1 && ranks->request->job->elastic.copy_every > 0 &&
                  ranks->request->job->elastic.replan;
    return copies ? SAFETY_COPIES : SAFETY_CHECKPOINT;
}

static struct safety analyse(struct ranks *ranks)
{
    struct safety safety = {.kind = SAFETY_CHECKPOINT, .single = ranks->single};
    if (ranks->single && !ranks->devices[0]->own_memory)
        return safety;
    safety.kind = find_kind(ranks);
    if (safety.kind == SAFETY_COPIES)
        price(ranks, &safety);
    if (safety.no_room)
        safety.kind = SAFETY_CHECKPOINT;
    else if (safety.kind == SAFETY_COPIES)
        safety.copy_every = find_interval(ranks, safety.copy_s);
    return safety;
}

struct safety safety_of(const struct planner_request *request, const struct plan *plan)
{
    size_t count = (size_t)plan_ranks(plan);
    struct ranks ranks = {
        .request = request,
        .plan = plan,
        .single = on_one_node(plan),
        .count = (int)count,
        .devices = xcalloc(count, sizeof *ranks.devices),
        .state = xcalloc(count, sizeof *ranks.state),
        .sole = xcalloc(count, sizeof *ranks.sole),
    };
    for (int rank = 0; rank < ranks.count; rank++)
        ranks.devices[rank] = find_device(request, plan_device(plan, rank), rank);
    struct safety safety = analyse(&ranks);
    free(ranks.devices);
    free(ranks.state);
    free(ranks.sole);
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

/* safety.c - compares every rank's slices with those of ranks on other nodes. Memory and messages
 * of copies are as worker/move makes them: each rank copies all of its state, twice, and sends what
 * it alone holds to the next rank on another node, which has room for two of these. */
#include "coordinator/planner/safety.h"

#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/planner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 64
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
    struct program *programs[RANKS_MAX];
    int count;
    uint64_t state[RANKS_MAX], sole[RANKS_MAX]; /* bytes */
};

/* A rank's device, named by the planner. */
static const struct planner_device *device_of(const struct ranks *ranks, int rank)
{
    const struct planner_request *request = ranks->request;
    const char *name = plan_device(ranks->plan, rank);
    int i = 0;
    while (i < request->device_count - 1 && strcmp(request->devices[i].name, name) != 0)
        i++;
    return &request->devices[i];
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

static int compare_tensors(const void *a, const void *b)
{
    return *(const int *)a - ((const struct parameter *)b)->tensor;
}

/* NULL: the rank has nothing of the tensor. A program's parameters are sorted by tensor, and a deep
 * model has a hundred thousand. */
static const struct parameter *find_slice(const struct program *program, int tensor)
{
    return bsearch(&tensor, program->parameters, program->parameter_count,
                   sizeof *program->parameters, compare_tensors);
}

/* Whether a box has elements that no rank has which is not lost together with this one. */
static bool is_sole(const struct ranks *ranks, int rank, int tensor, const struct box *box,
                    int other)
{
    for (; other < ranks->count; other++) {
        struct box common, left[2 * DIMS_MAX];
        if (lost_together(ranks, rank, other))
            continue;
        const struct parameter *slice = find_slice(ranks->programs[other], tensor);
        if (!slice || !box_overlap(box, &slice->box, &common))
            continue;
        int pieces = box_subtract(box, &common, left);
        for (int piece = 0; piece < pieces; piece++)
            if (is_sole(ranks, rank, tensor, &left[piece], other + 1))
                return true;
        return false;
    }
    return true;
}

/* A slice that others do not have completely is copied as a whole. */
static void weigh(struct ranks *ranks, int rank)
{
    const struct program *program = ranks->programs[rank];
    for (size_t i = 0; i < program->parameter_count; i++) {
        const struct parameter *parameter = &program->parameters[i];
        uint64_t bytes = (uint64_t)box_count(&parameter->box) * STATE_PARTS * ELEMENT_BYTES;
        ranks->state[rank] += bytes;
        if (is_sole(ranks, rank, parameter->tensor, &parameter->box, 0))
            ranks->sole[rank] += bytes;
    }
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
    return device_of(ranks, rank)->own_memory ? ranks->state[rank]
                                              : ranks->plan->stages[stage].memory_bytes;
}

static bool has_room(const struct ranks *ranks, int rank, uint64_t copies)
{
    uint64_t room = device_of(ranks, rank)->host_bytes;
    return room == 0 || host_need(ranks, rank) + copies <= room;
}

static void price(const struct ranks *ranks, struct safety *out)
{
    uint64_t held[RANKS_MAX] = {0};
    for (int rank = 0; rank < ranks->count; rank++) {
        int neighbour = neighbour_of(ranks, rank);
        const struct planner_device *device = device_of(ranks, rank);
        const struct profile_link *link = link_to(device, device_of(ranks, neighbour)->host);
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
    for (int rank = 0; rank < ranks->count; rank++) {
        weigh(ranks, rank);
        sole += ranks->sole[rank];
    }
    if (sole == 0)
        return ranks->single ? SAFETY_CHECKPOINT : SAFETY_REPLICAS;
    bool copies = ranks->count > 1 && ranks->request->job->elastic.copy_every > 0 &&
                  ranks->request->job->elastic.replan;
    return copies ? SAFETY_COPIES : SAFETY_CHECKPOINT;
}

static struct safety analyse(struct ranks *ranks)
{
    struct safety safety = {.kind = SAFETY_UNKNOWN, .single = ranks->single};
    int wanted = plan_ranks(ranks->plan), rc = 0;
    if (ranks->single && !device_of(ranks, 0)->own_memory) {
        safety.kind = SAFETY_CHECKPOINT;
        return safety;
    }
    for (; wanted <= RANKS_MAX && ranks->count < wanted && rc == 0; ranks->count += rc == 0)
        rc = lower(ranks->request->graph, ranks->plan, ranks->count, &ranks->programs[ranks->count],
                   NULL);
    if (ranks->count == wanted)
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
    struct ranks *ranks = xcalloc(1, sizeof *ranks);
    ranks->request = request;
    ranks->plan = plan;
    ranks->single = on_one_node(plan);
    struct safety safety = analyse(ranks);
    for (int rank = 0; rank < ranks->count; rank++)
        program_destroy(ranks->programs[rank]);
    free(ranks);
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

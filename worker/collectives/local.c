/* local.c - ranks as threads of one process: the hub that they share, joining and leaving it. */
#include "worker/collectives/local.h"

#include "common/base/memory.h"
#include "worker/collectives/members.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct timespec local_deadline(double timeout_s)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double whole = floor(timeout_s);
    now.tv_sec += (time_t)whole;
    now.tv_nsec += (long)((timeout_s - whole) * 1e9);
    if (now.tv_nsec >= 1000000000) {
        now.tv_sec++;
        now.tv_nsec -= 1000000000;
    }
    return now;
}

void local_count_sent(struct local_hub *hub, int owner, int reader, size_t count)
{
    if (owner != reader)
        atomic_fetch_add_explicit(&hub->ranks[owner].sent, count, memory_order_relaxed);
}

struct local_hub *local_hub_create(int count)
{
    struct local_hub *hub = xcalloc(1, sizeof *hub);
    pthread_mutex_init(&hub->lock, NULL);
    hub->count = count;
    hub->ranks = xcalloc((size_t)count, sizeof *hub->ranks);
    for (int i = 0; i < count; i++) {
        cond_init(&hub->ranks[i].changed);
        hub->ranks[i].inbox_end = &hub->ranks[i].inbox;
    }
    return hub;
}

bool local_on_device(const struct fabric *fabric)
{
    return fabric->accelerator && fabric->accelerator->inside();
}

int local_settle(const struct fabric *fabric, struct error *err)
{
    return local_on_device(fabric) ? fabric->accelerator->finish(err) : 0;
}

void local_copy(const struct fabric *fabric, enum element element, void *destination,
                const void *source, size_t count)
{
    if (count == 0 || source == destination)
        return;
    if (local_on_device(fabric))
        fabric->accelerator->move(destination, source, count * element_size(element));
    else
        memcpy(destination, source, count * element_size(element));
}

static void meeting_destroy(struct meeting *meeting)
{
    pthread_cond_destroy(&meeting->changed);
    free(meeting->ranks);
    free(meeting->joined);
    free(meeting->name);
    free(meeting->arrivals);
    free(meeting);
}

void local_hub_destroy(struct local_hub *hub)
{
    if (!hub)
        return;
    while (hub->meetings) {
        struct meeting *next = hub->meetings->next;
        meeting_destroy(hub->meetings);
        hub->meetings = next;
    }
    for (int i = 0; i < hub->count; i++)
        pthread_cond_destroy(&hub->ranks[i].changed);
    pthread_mutex_destroy(&hub->lock);
    free(hub->ranks);
    free(hub);
}

static void wake_everyone(struct local_hub *hub)
{
    for (int i = 0; i < hub->count; i++)
        pthread_cond_broadcast(&hub->ranks[i].changed);
    for (struct meeting *meeting = hub->meetings; meeting; meeting = meeting->next)
        pthread_cond_broadcast(&meeting->changed);
}

static int local_open(const struct fabric_config *config, struct fabric **out, struct error *err)
{
    struct local_hub *hub = config->shared;
    if (!hub || config->count != hub->count)
        return error_set(err, -EINVAL, "local: %d ranks need a hub of %d", config->count,
                         config->count);
    if (config->rank < 0 || config->rank >= hub->count)
        return error_set(err, -EINVAL, "local: rank %d of %d", config->rank, hub->count);
    if (!(config->timeout_s > 0))
        return error_set(err, -EINVAL, "local: a limit of %g s: more than 0 is needed",
                         config->timeout_s);

    pthread_mutex_lock(&hub->lock);
    bool taken = hub->ranks[config->rank].state != RANK_ABSENT;
    if (!taken)
        hub->ranks[config->rank].state = RANK_OPEN;
    pthread_mutex_unlock(&hub->lock);
    if (taken)
        return error_set(err, -EBUSY, "local: rank %d has joined this hub before", config->rank);

    struct fabric *fabric = xcalloc(1, sizeof *fabric);
    fabric->hub = hub;
    fabric->accelerator = config->accelerator;
    fabric->rank = config->rank;
    fabric->timeout_s = config->timeout_s;
    local_requests_grow(fabric);
    *out = fabric;
    return 0;
}

static void local_close(struct fabric *fabric)
{
    if (!fabric)
        return;
    pthread_mutex_lock(&fabric->hub->lock);
    local_messages_withdraw(fabric);
    fabric->hub->ranks[fabric->rank].state = RANK_CLOSED;
    wake_everyone(fabric->hub);
    pthread_mutex_unlock(&fabric->hub->lock);

    while (fabric->groups) {
        struct fabric_group *next = fabric->groups->next;
        free(fabric->groups->parts);
        free(fabric->groups);
        fabric->groups = next;
    }
    for (size_t i = 0; i < fabric->block_count; i++)
        free(fabric->blocks[i]);
    free(fabric->blocks);
    free(fabric);
}

static void local_abort(struct fabric *fabric)
{
    pthread_mutex_lock(&fabric->hub->lock);
    fabric->hub->aborted = true;
    wake_everyone(fabric->hub);
    pthread_mutex_unlock(&fabric->hub->lock);
}

static struct meeting *meeting_create(const int *ranks, int count)
{
    struct meeting *meeting = xcalloc(1, sizeof *meeting);
    meeting->count = count;
    meeting->ranks = xcalloc((size_t)count, sizeof *ranks);
    memcpy(meeting->ranks, ranks, (size_t)count * sizeof *ranks);
    meeting->joined = xcalloc((size_t)count, sizeof *meeting->joined);
    meeting->arrivals = xcalloc((size_t)count, sizeof *meeting->arrivals);
    meeting->name = collective_members_print(ranks, count);
    cond_init(&meeting->changed);
    return meeting;
}

/* The oldest meeting of these ranks that this member has not joined yet: groups of the same ranks
 * are told apart by the order in which their members create them. */
static struct meeting *meeting_join(struct local_hub *hub, const int *ranks, int count, int me)
{
    struct meeting **at = &hub->meetings;
    for (; *at; at = &(*at)->next)
        if ((*at)->count == count && !(*at)->joined[me] &&
            memcmp((*at)->ranks, ranks, (size_t)count * sizeof *ranks) == 0)
            break;
    if (!*at)
        *at = meeting_create(ranks, count);
    (*at)->joined[me] = true;
    return *at;
}

static int local_group(struct fabric *fabric, const int *ranks, int count,
                       struct fabric_group **out, struct error *err)
{
    int me;
    int rc = collective_members_check(ranks, count, fabric->rank, fabric->hub->count, &me, err);
    if (rc < 0)
        return rc;
    struct fabric_group *group = xcalloc(1, sizeof *group);
    group->fabric = fabric;
    group->me = me;
    group->parts = xcalloc((size_t)count, sizeof *group->parts);
    pthread_mutex_lock(&fabric->hub->lock);
    group->meeting = meeting_join(fabric->hub, ranks, count, me);
    pthread_mutex_unlock(&fabric->hub->lock);
    group->next = fabric->groups;
    fabric->groups = group;
    *out = group;
    return 0;
}

static uint64_t local_sent(const struct fabric *fabric)
{
    return atomic_load_explicit(&fabric->hub->ranks[fabric->rank].sent, memory_order_relaxed);
}

const struct collectives collectives_local = {
    .name = "local",
    .in_lanes = true,
    .open = local_open,
    .close = local_close,
    .abort = local_abort,
    .group = local_group,
    .all_reduce = local_all_reduce,
    .reduce_scatter = local_reduce_scatter,
    .all_gather = local_all_gather,
    .all_to_all = local_all_to_all,
    .send = local_send,
    .wait = local_wait,
    .receive = local_receive,
    .sent = local_sent,
};

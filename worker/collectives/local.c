/* local.c - ranks as threads of one process: the hub that they share, joining and leaving it; how
 * the threads of a group meet and part; and collectives between them.
 *
 * Everybody brings the arguments of its call, learns whether they are consistent, reads the others'
 * memory, and leaves when nobody reads its own any more.
 *
 * An all-reduce is a reduce-scatter followed by an all-gather. Each member first reduces its own
 * chunk of everybody's data into its own data, then copies the reduced chunks of the others. In the
 * first half, chunk k of all data is touched by member k only; in the second, chunk k of member k's
 * data is only read; a barrier separates them. The bytes are those of a ring: 2(n-1)/n of the
 * data. */
#include "worker/collectives/local.h"

#include "common/base/memory.h"
#include "worker/collectives/library.h"

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

static void gathering_destroy(struct gathering *gathering)
{
    pthread_cond_destroy(&gathering->changed);
    free(gathering->ranks);
    free(gathering->joined);
    free(gathering->name);
    free(gathering->arrivals);
    free(gathering);
}

void local_hub_destroy(struct local_hub *hub)
{
    if (!hub)
        return;
    while (hub->gatherings) {
        struct gathering *next = hub->gatherings->next;
        gathering_destroy(hub->gatherings);
        hub->gatherings = next;
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
    for (struct gathering *gathering = hub->gatherings; gathering; gathering = gathering->next)
        pthread_cond_broadcast(&gathering->changed);
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
    bool taken = hub->ranks[config->rank].state != LOCAL_ABSENT;
    if (!taken)
        hub->ranks[config->rank].state = LOCAL_OPEN;
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
    fabric->hub->ranks[fabric->rank].state = LOCAL_CLOSED;
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

static struct gathering *gathering_create(const int *ranks, int count)
{
    struct gathering *gathering = xcalloc(1, sizeof *gathering);
    gathering->count = count;
    gathering->ranks = xcalloc((size_t)count, sizeof *ranks);
    memcpy(gathering->ranks, ranks, (size_t)count * sizeof *ranks);
    gathering->joined = xcalloc((size_t)count, sizeof *gathering->joined);
    gathering->arrivals = xcalloc((size_t)count, sizeof *gathering->arrivals);
    gathering->name = collective_members_print(ranks, count);
    cond_init(&gathering->changed);
    return gathering;
}

/* The oldest gathering of these ranks that this member has not joined yet: groups of the same ranks
 * are told apart by the order in which their members create them. */
static struct gathering *gathering_join(struct local_hub *hub, const int *ranks, int count, int me)
{
    struct gathering **at = &hub->gatherings;
    for (; *at; at = &(*at)->next)
        if ((*at)->count == count && !(*at)->joined[me] &&
            memcmp((*at)->ranks, ranks, (size_t)count * sizeof *ranks) == 0)
            break;
    if (!*at)
        *at = gathering_create(ranks, count);
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
    group->gathering = gathering_join(fabric->hub, ranks, count, me);
    pthread_mutex_unlock(&fabric->hub->lock);
    group->next = fabric->groups;
    fabric->groups = group;
    *out = group;
    return 0;
}

static const char *const call_names[] = {
    [ALL_REDUCE] = "all_reduce",
    [REDUCE_SCATTER] = "reduce_scatter",
    [ALL_GATHER] = "all_gather",
    [ALL_TO_ALL] = "all_to_all",
};

static const char *arrival_name(const struct arrival *arrival)
{
    if (arrival->call == ALL_REDUCE && arrival->reduction == REDUCTION_MAX)
        return "all_reduce of maxima";
    return call_names[arrival->call];
}

static int chunks_agree(struct gathering *gathering, int first, int second)
{
    const struct arrival *a = &gathering->arrivals[first], *b = &gathering->arrivals[second];
    if (a->count != b->count)
        return error_set(&gathering->failure, -EINVAL,
                         "%s in group %s: rank %d has %zu tensors, but rank %d has %zu",
                         arrival_name(a), gathering->name, gathering->ranks[first], a->count,
                         gathering->ranks[second], b->count);
    for (size_t part = 0; part < a->count; part++)
        for (int i = 0; i < gathering->count; i++)
            if (a->parts[part].counts[i] != b->parts[part].counts[i])
                return error_set(&gathering->failure, -EINVAL,
                                 "%s in group %s: the chunk of rank %d has %zu elements for rank "
                                 "%d, but %zu for rank %d",
                                 arrival_name(a), gathering->name, gathering->ranks[i],
                                 a->parts[part].counts[i], gathering->ranks[first],
                                 b->parts[part].counts[i], gathering->ranks[second]);
    return 0;
}

/* Check that two members' calls are consistent: `first` sends `second` what that receives, or both
 * name the same chunks. */
static int pair_agrees(struct gathering *gathering, int first, int second)
{
    const struct arrival *a = &gathering->arrivals[first], *b = &gathering->arrivals[second];
    int rank = gathering->ranks[first], other = gathering->ranks[second];
    if (a->call != b->call || a->reduction != b->reduction)
        return error_set(&gathering->failure, -EINVAL,
                         "group %s: rank %d calls %s, but rank %d calls %s", gathering->name, rank,
                         arrival_name(a), other, arrival_name(b));
    if (a->element != b->element)
        return error_set(&gathering->failure, -EINVAL,
                         "%s in group %s: rank %d has elements of %zu bytes, but rank %d of %zu",
                         arrival_name(a), gathering->name, rank, element_size(a->element), other,
                         element_size(b->element));
    if (a->call == ALL_REDUCE && a->count != b->count)
        return error_set(&gathering->failure, -EINVAL,
                         "%s in group %s: rank %d has %zu elements, but rank %d has %zu",
                         arrival_name(a), gathering->name, rank, a->count, other, b->count);
    if (a->call == ALL_TO_ALL && a->sends[second] != b->receives[first])
        return error_set(&gathering->failure, -EINVAL,
                         "%s in group %s: rank %d sends %zu elements to rank %d, which expects %zu",
                         arrival_name(a), gathering->name, rank, a->sends[second], other,
                         b->receives[first]);
    return a->call == REDUCE_SCATTER || a->call == ALL_GATHER
               ? chunks_agree(gathering, first, second)
               : 0;
}

static int all_agree(struct gathering *gathering)
{
    /* Comparing all with the first is enough, except where what is sent differs by pair. */
    int rc = 0;
    int firsts = gathering->arrivals[0].call == ALL_TO_ALL ? gathering->count : 1;
    for (int i = 0; i < firsts && rc == 0; i++)
        for (int j = 0; j < gathering->count && rc == 0; j++)
            rc = pair_agrees(gathering, i, j);
    return rc;
}

static void barrier_pass(struct gathering *gathering)
{
    gathering->waiting = 0;
    gathering->barrier++;
    for (int i = 0; i < gathering->count; i++)
        gathering->arrivals[i].here = false;
    pthread_cond_broadcast(&gathering->changed);
}

/* End the group for all members, with the same error. */
static int gathering_fail(struct gathering *gathering, int rc)
{
    gathering->failed = rc;
    pthread_cond_broadcast(&gathering->changed);
    return rc;
}

static bool is_missing(const struct gathering *gathering, int member, const struct local_hub *hub,
                       bool closed)
{
    return !gathering->arrivals[member].here &&
           (!closed || hub->ranks[gathering->ranks[member]].state == LOCAL_CLOSED);
}

/* Why a member need not wait any longer, as an errno; 0: it has to wait. */
static int gathering_hopeless(struct fabric_group *group, bool late, struct error *err)
{
    struct gathering *gathering = group->gathering;
    struct local_hub *hub = group->fabric->hub;
    const char *call = arrival_name(&gathering->arrivals[group->me]);
    if (!gathering->failed && hub->aborted)
        return error_set(err, -ECANCELED, "%s in group %s: the exchange was aborted", call,
                         gathering->name);
    for (int i = 0; i < gathering->count && !gathering->failed; i++) {
        int rank = gathering->ranks[i];
        if (is_missing(gathering, i, hub, true))
            gathering_fail(gathering, error_set(&gathering->failure, -ECONNRESET,
                                                "%s in group %s: rank %d is gone", call,
                                                gathering->name, rank));
        else if (late && is_missing(gathering, i, hub, false))
            gathering_fail(gathering,
                           error_set(&gathering->failure, -ETIMEDOUT,
                                     "%s in group %s: rank %d has not arrived within %g s", call,
                                     gathering->name, rank, group->fabric->timeout_s));
    }
    if (gathering->failed && err)
        *err = gathering->failure;
    return gathering->failed;
}

/* Bring an arrival, and return when all members have brought theirs and agree. If they do not, all
 * get the same error. */
static int local_meet(struct fabric_group *group, const struct arrival *arrival, struct error *err)
{
    struct gathering *gathering = group->gathering;
    struct timespec deadline = local_deadline(group->fabric->timeout_s);
    int rc = local_settle(group->fabric, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&group->fabric->hub->lock);
    gathering->arrivals[group->me] = *arrival;
    gathering->arrivals[group->me].here = true;
    uint64_t barrier = gathering->barrier;
    bool late = false;
    rc = gathering_hopeless(group, late, err);
    if (rc == 0 && ++gathering->waiting == gathering->count) {
        gathering->failed = all_agree(gathering);
        barrier_pass(gathering);
    }
    while (rc == 0 && gathering->barrier == barrier) {
        late = pthread_cond_timedwait(&gathering->changed, &group->fabric->hub->lock, &deadline) ==
               ETIMEDOUT;
        if (gathering->barrier == barrier)
            rc = gathering_hopeless(group, late, err);
    }
    if (rc == 0 && gathering->failed) {
        rc = gathering->failed;
        if (err)
            *err = gathering->failure;
    }
    pthread_mutex_unlock(&group->fabric->hub->lock);
    return rc;
}

/* Return when all members have come this far. All are on their way, so there is no limit. */
static int local_part(struct fabric_group *group, struct error *err)
{
    struct gathering *gathering = group->gathering;
    int rc = local_settle(group->fabric, err);
    pthread_mutex_lock(&group->fabric->hub->lock);
    uint64_t barrier = gathering->barrier;
    if (++gathering->waiting == gathering->count)
        barrier_pass(gathering);
    while (gathering->barrier == barrier)
        pthread_cond_wait(&gathering->changed, &group->fabric->hub->lock);
    pthread_mutex_unlock(&group->fabric->hub->lock);
    return rc;
}

/* Copy what member `owner` has, and count it as sent by it. If it is in place already, nothing is
 * copied. */
static void local_take(struct fabric_group *group, int owner, enum element element,
                       const void *source, void *destination, size_t count)
{
    local_copy(group->fabric, element, destination, source, count);
    local_count_sent(group->fabric->hub, group->gathering->ranks[owner], group->fabric->rank,
                     count);
}

/* Address of element `index` of an array. */
static void *element_at(const void *data, enum element element, size_t index)
{
    return (char *)data + index * element_size(element);
}

/* Reduce `count` elements of the members' sources, which group->parts points to. */
static void local_reduce(struct fabric_group *group, enum element element, void *destination,
                         size_t count, enum reduction reduction)
{
    struct gathering *gathering = group->gathering;
    if (count == 0)
        return;
    for (int i = 0; i < gathering->count; i++)
        local_count_sent(group->fabric->hub, gathering->ranks[i], group->fabric->rank, count);
    if (local_on_device(group->fabric))
        group->fabric->accelerator->reduce(element, destination, group->parts, gathering->count,
                                           count, reduction == REDUCTION_MAX);
    else
        collective_reduce(element, destination, group->parts, gathering->count, count, reduction);
}

static int local_all_reduce(struct fabric_group *group, enum element element, void *data,
                            size_t count, enum reduction reduction, struct error *err)
{
    struct gathering *gathering = group->gathering;
    struct arrival arrival = {ALL_REDUCE, element, reduction, .source = data, .count = count};
    int rc = local_meet(group, &arrival, err);
    if (rc < 0)
        return rc;
    size_t low, high;
    collective_chunk(count, gathering->count, group->me, &low, &high);
    for (int i = 0; i < gathering->count; i++)
        group->parts[i] = element_at(gathering->arrivals[i].source, element, low);
    local_reduce(group, element, element_at(data, element, low), high - low, reduction);
    rc = local_part(group, err);
    for (int i = 0; i < gathering->count; i++) {
        collective_chunk(count, gathering->count, i, &low, &high);
        local_take(group, i, element, element_at(gathering->arrivals[i].source, element, low),
                   element_at(data, element, low), high - low);
    }
    int parted = local_part(group, err);
    return rc < 0 ? rc : parted;
}

static int local_reduce_scatter(struct fabric_group *group, enum element element,
                                const struct collective_part *parts, int count, struct error *err)
{
    struct gathering *gathering = group->gathering;
    struct arrival arrival = {REDUCE_SCATTER, element, .parts = parts, .count = (size_t)count};
    int rc = local_meet(group, &arrival, err);
    if (rc < 0)
        return rc;
    for (int p = 0; p < count; p++) {
        size_t offset = collective_total(parts[p].counts, group->me);
        for (int i = 0; i < gathering->count; i++)
            group->parts[i] = element_at(gathering->arrivals[i].parts[p].source, element, offset);
        local_reduce(group, element, parts[p].destination, parts[p].counts[group->me],
                     REDUCTION_SUM);
    }
    return local_part(group, err);
}

static int local_all_gather(struct fabric_group *group, enum element element,
                            const struct collective_part *parts, int count, struct error *err)
{
    struct arrival arrival = {ALL_GATHER, element, .parts = parts, .count = (size_t)count};
    int rc = local_meet(group, &arrival, err);
    if (rc < 0)
        return rc;
    for (int p = 0; p < count; p++) {
        void *destination = parts[p].destination;
        for (int i = 0; i < group->gathering->count; i++) {
            const struct arrival *owner = &group->gathering->arrivals[i];
            local_take(group, i, element, owner->parts[p].source, destination, parts[p].counts[i]);
            destination = element_at(destination, element, parts[p].counts[i]);
        }
    }
    return local_part(group, err);
}

static int local_all_to_all(struct fabric_group *group, enum element element, const void *source,
                            const size_t *sends, void *destination, const size_t *receives,
                            struct error *err)
{
    struct arrival arrival = {ALL_TO_ALL, element, .source = source, .sends = sends,
                              .receives = receives};
    int rc = local_meet(group, &arrival, err);
    if (rc < 0)
        return rc;
    size_t offset = 0;
    for (int i = 0; i < group->gathering->count; i++) {
        const struct arrival *other = &group->gathering->arrivals[i];
        local_take(group, i, element,
                   element_at(other->source, element, collective_total(other->sends, group->me)),
                   element_at(destination, element, offset), receives[i]);
        offset += receives[i];
    }
    return local_part(group, err);
}

static uint64_t local_sent(const struct fabric *fabric)
{
    return atomic_load_explicit(&fabric->hub->ranks[fabric->rank].sent, memory_order_relaxed);
}

const struct collectives collectives_local = {
    .name = "local",
    .in_streams = true,
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

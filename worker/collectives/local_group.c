/* local_group.c - the collectives of threads: meet, read the others' memory, part.
 *
 * An all-reduce is a reduce-scatter and an all-gather: each member first reduces its own chunk of
 * everybody's data into its own, then copies the reduced chunks of the others. In the first half
 * chunk k of all data is touched by member k only, in the second chunk k of member k's data is only
 * read; a barrier lies between. Bytes as in a ring: 2(n-1)/n of the data. */
#include "worker/collectives/local.h"
#include "worker/collectives/reduce.h"

#include <errno.h>
#include <string.h>

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

/* ---- agreement ---- */

static int chunks_agree(struct meeting *meeting, int first, int second)
{
    const struct arrival *a = &meeting->arrivals[first], *b = &meeting->arrivals[second];
    if (a->count != b->count)
        return error_set(&meeting->failure, -EINVAL,
                         "%s in group %s: rank %d has %zu tensors, but rank %d has %zu",
                         arrival_name(a), meeting->name, meeting->ranks[first], a->count,
                         meeting->ranks[second], b->count);
    for (size_t part = 0; part < a->count; part++)
        for (int i = 0; i < meeting->count; i++)
            if (a->parts[part].counts[i] != b->parts[part].counts[i])
                return error_set(&meeting->failure, -EINVAL,
                                 "%s in group %s: the chunk of rank %d has %zu elements for rank "
                                 "%d, but %zu for rank %d",
                                 arrival_name(a), meeting->name, meeting->ranks[i],
                                 a->parts[part].counts[i], meeting->ranks[first],
                                 b->parts[part].counts[i], meeting->ranks[second]);
    return 0;
}

/* Both members describe one thing: first sends to second what second receives, or both name
 * the same chunks. */
static int pair_agrees(struct meeting *meeting, int first, int second)
{
    const struct arrival *a = &meeting->arrivals[first], *b = &meeting->arrivals[second];
    int rank = meeting->ranks[first], other = meeting->ranks[second];
    if (a->call != b->call || a->reduction != b->reduction)
        return error_set(&meeting->failure, -EINVAL,
                         "group %s: rank %d calls %s, but rank %d calls %s", meeting->name, rank,
                         arrival_name(a), other, arrival_name(b));
    if (a->element != b->element)
        return error_set(&meeting->failure, -EINVAL,
                         "%s in group %s: rank %d has elements of %zu bytes, but rank %d of %zu",
                         arrival_name(a), meeting->name, rank, element_size(a->element), other,
                         element_size(b->element));
    if (a->call == ALL_REDUCE && a->count != b->count)
        return error_set(&meeting->failure, -EINVAL,
                         "%s in group %s: rank %d has %zu elements, but rank %d has %zu",
                         arrival_name(a), meeting->name, rank, a->count, other, b->count);
    if (a->call == ALL_TO_ALL && a->sends[second] != b->receives[first])
        return error_set(&meeting->failure, -EINVAL,
                         "%s in group %s: rank %d sends %zu elements to rank %d, which expects %zu",
                         arrival_name(a), meeting->name, rank, a->sends[second], other,
                         b->receives[first]);
    return a->call == REDUCE_SCATTER || a->call == ALL_GATHER ? chunks_agree(meeting, first, second)
                                                              : 0;
}

static int all_agree(struct meeting *meeting)
{
    /* What is equal to the first is equal; what is sent differs from pair to pair. */
    int rc = 0;
    int firsts = meeting->arrivals[0].call == ALL_TO_ALL ? meeting->count : 1;
    for (int i = 0; i < firsts && rc == 0; i++)
        for (int j = 0; j < meeting->count && rc == 0; j++)
            rc = pair_agrees(meeting, i, j);
    return rc;
}

/* ---- meeting and parting ---- */

static void barrier_pass(struct meeting *meeting)
{
    meeting->waiting = 0;
    meeting->barrier++;
    for (int i = 0; i < meeting->count; i++)
        meeting->arrivals[i].here = false;
    pthread_cond_broadcast(&meeting->changed);
}

/* The group is over for all members; they hear the same words. */
static int meeting_fail(struct meeting *meeting, int rc)
{
    meeting->failed = rc;
    pthread_cond_broadcast(&meeting->changed);
    return rc;
}

static bool missing(const struct meeting *meeting, int member, const struct local_hub *hub,
                    bool closed)
{
    return !meeting->arrivals[member].here &&
           (!closed || hub->ranks[meeting->ranks[member]].state == RANK_CLOSED);
}

/* Why a member that has to wait need not wait any longer; 0: it has to. */
static int meeting_hopeless(struct fabric_group *group, bool late, struct error *err)
{
    struct meeting *meeting = group->meeting;
    struct local_hub *hub = group->fabric->hub;
    const char *call = arrival_name(&meeting->arrivals[group->me]);
    if (!meeting->failed && hub->aborted)
        return error_set(err, -ECANCELED, "%s in group %s: the exchange was aborted", call,
                         meeting->name);
    for (int i = 0; i < meeting->count && !meeting->failed; i++) {
        int rank = meeting->ranks[i];
        if (missing(meeting, i, hub, true))
            meeting_fail(meeting,
                         error_set(&meeting->failure, -ECONNRESET,
                                   "%s in group %s: rank %d is gone", call, meeting->name, rank));
        else if (late && missing(meeting, i, hub, false))
            meeting_fail(meeting, error_set(&meeting->failure, -ETIMEDOUT,
                                            "%s in group %s: rank %d has not arrived within %g s",
                                            call, meeting->name, rank, group->fabric->timeout_s));
    }
    if (meeting->failed && err)
        *err = meeting->failure;
    return meeting->failed;
}

/* Brings the arrival and returns when all members have brought theirs and agree. */
static int meet(struct fabric_group *group, const struct arrival *arrival, struct error *err)
{
    struct meeting *meeting = group->meeting;
    struct timespec deadline = local_deadline(group->fabric->timeout_s);
    int rc = local_settle(group->fabric, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&group->fabric->hub->lock);
    meeting->arrivals[group->me] = *arrival;
    meeting->arrivals[group->me].here = true;
    uint64_t barrier = meeting->barrier;
    bool late = false;
    rc = meeting_hopeless(group, late, err);
    if (rc == 0 && ++meeting->waiting == meeting->count) {
        meeting->failed = all_agree(meeting);
        barrier_pass(meeting);
    }
    while (rc == 0 && meeting->barrier == barrier) {
        late = pthread_cond_timedwait(&meeting->changed, &group->fabric->hub->lock, &deadline) ==
               ETIMEDOUT;
        if (meeting->barrier == barrier)
            rc = meeting_hopeless(group, late, err);
    }
    if (rc == 0 && meeting->failed) {
        rc = meeting->failed;
        if (err)
            *err = meeting->failure;
    }
    pthread_mutex_unlock(&group->fabric->hub->lock);
    return rc;
}

/* Returns when all members have come this far; all are on the way, so there is no limit. */
static int part(struct fabric_group *group, struct error *err)
{
    struct meeting *meeting = group->meeting;
    int rc = local_settle(group->fabric, err);
    pthread_mutex_lock(&group->fabric->hub->lock);
    uint64_t barrier = meeting->barrier;
    if (++meeting->waiting == meeting->count)
        barrier_pass(meeting);
    while (meeting->barrier == barrier)
        pthread_cond_wait(&meeting->changed, &group->fabric->hub->lock);
    pthread_mutex_unlock(&group->fabric->hub->lock);
    return rc;
}

/* ---- calls ---- */

static size_t sum(const size_t *counts, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++)
        total += counts[i];
    return total;
}

/* Copies what member owns, and counts it as sent by him; in place there is nothing to copy. */
static void take(struct fabric_group *group, int owner, enum element element, const void *source,
                 void *destination, size_t count)
{
    local_copy(group->fabric, element, destination, source, count);
    local_count_sent(group->fabric->hub, group->meeting->ranks[owner], group->fabric->rank, count);
}

/* Element `index` of an array. */
static void *at(const void *data, enum element element, size_t index)
{
    return (char *)data + index * element_size(element);
}

/* Reduces count elements of the members' sources, which group->parts tells the places of. */
static void reduce(struct fabric_group *group, enum element element, void *destination,
                   size_t count, enum reduction reduction)
{
    struct meeting *meeting = group->meeting;
    if (count == 0)
        return;
    for (int i = 0; i < meeting->count; i++)
        local_count_sent(group->fabric->hub, meeting->ranks[i], group->fabric->rank, count);
    if (local_on_device(group->fabric))
        group->fabric->accelerator->reduce(element, destination, group->parts, meeting->count,
                                           count, reduction == REDUCTION_MAX);
    else
        collective_reduce(element, destination, group->parts, meeting->count, count, reduction);
}

int local_all_reduce(struct fabric_group *group, enum element element, void *data, size_t count,
                     enum reduction reduction, struct error *err)
{
    struct meeting *meeting = group->meeting;
    struct arrival arrival = {ALL_REDUCE, element, reduction, .source = data, .count = count};
    int rc = meet(group, &arrival, err);
    if (rc < 0)
        return rc;
    size_t low, high;
    collective_chunk(count, meeting->count, group->me, &low, &high);
    for (int i = 0; i < meeting->count; i++)
        group->parts[i] = at(meeting->arrivals[i].source, element, low);
    reduce(group, element, at(data, element, low), high - low, reduction);
    rc = part(group, err);
    for (int i = 0; i < meeting->count; i++) {
        collective_chunk(count, meeting->count, i, &low, &high);
        take(group, i, element, at(meeting->arrivals[i].source, element, low),
             at(data, element, low), high - low);
    }
    int parted = part(group, err);
    return rc < 0 ? rc : parted;
}

int local_reduce_scatter(struct fabric_group *group, enum element element,
                         const struct collective_part *parts, int count, struct error *err)
{
    struct meeting *meeting = group->meeting;
    struct arrival arrival = {REDUCE_SCATTER, element, .parts = parts, .count = (size_t)count};
    int rc = meet(group, &arrival, err);
    if (rc < 0)
        return rc;
    for (int p = 0; p < count; p++) {
        size_t offset = sum(parts[p].counts, group->me);
        for (int i = 0; i < meeting->count; i++)
            group->parts[i] = at(meeting->arrivals[i].parts[p].source, element, offset);
        reduce(group, element, parts[p].destination, parts[p].counts[group->me], REDUCTION_SUM);
    }
    return part(group, err);
}

int local_all_gather(struct fabric_group *group, enum element element,
                     const struct collective_part *parts, int count, struct error *err)
{
    struct arrival arrival = {ALL_GATHER, element, .parts = parts, .count = (size_t)count};
    int rc = meet(group, &arrival, err);
    if (rc < 0)
        return rc;
    for (int p = 0; p < count; p++) {
        void *destination = parts[p].destination;
        for (int i = 0; i < group->meeting->count; i++) {
            const struct arrival *owner = &group->meeting->arrivals[i];
            take(group, i, element, owner->parts[p].source, destination, parts[p].counts[i]);
            destination = at(destination, element, parts[p].counts[i]);
        }
    }
    return part(group, err);
}

int local_all_to_all(struct fabric_group *group, enum element element, const void *source,
                     const size_t *sends, void *destination, const size_t *receives,
                     struct error *err)
{
    struct arrival arrival = {ALL_TO_ALL, element, .source = source, .sends = sends,
                              .receives = receives};
    int rc = meet(group, &arrival, err);
    if (rc < 0)
        return rc;
    size_t offset = 0;
    for (int i = 0; i < group->meeting->count; i++) {
        const struct arrival *other = &group->meeting->arrivals[i];
        take(group, i, element, at(other->source, element, sum(other->sends, group->me)),
             at(destination, element, offset), receives[i]);
        offset += receives[i];
    }
    return part(group, err);
}

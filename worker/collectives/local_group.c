/* local_group.c - collectives between threads: meet, read the others' memory, part
 * (local_meeting.c).
 *
 * An all-reduce is a reduce-scatter followed by an all-gather. Each member first reduces its own
 * chunk of everybody's data into its own data, then copies the reduced chunks of the others. In the
 * first half, chunk k of all data is touched by member k only; in the second, chunk k of member k's
 * data is only read; a barrier separates them. The bytes are those of a ring: 2(n-1)/n of the
 * data. */
#include "worker/collectives/local.h"
#include "worker/collectives/reduce.h"

static size_t sum(const size_t *counts, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++)
        total += counts[i];
    return total;
}

/* Copy what member `owner` has, and count it as sent by it. If it is in place already, nothing is
 * copied. */
static void take(struct fabric_group *group, int owner, enum element element, const void *source,
                 void *destination, size_t count)
{
    local_copy(group->fabric, element, destination, source, count);
    local_count_sent(group->fabric->hub, group->meeting->ranks[owner], group->fabric->rank, count);
}

/* Address of element `index` of an array. */
static void *at(const void *data, enum element element, size_t index)
{
    return (char *)data + index * element_size(element);
}

/* Reduce `count` elements of the members' sources, which group->parts points to. */
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
    int rc = local_meet(group, &arrival, err);
    if (rc < 0)
        return rc;
    size_t low, high;
    collective_chunk(count, meeting->count, group->me, &low, &high);
    for (int i = 0; i < meeting->count; i++)
        group->parts[i] = at(meeting->arrivals[i].source, element, low);
    reduce(group, element, at(data, element, low), high - low, reduction);
    rc = local_part(group, err);
    for (int i = 0; i < meeting->count; i++) {
        collective_chunk(count, meeting->count, i, &low, &high);
        take(group, i, element, at(meeting->arrivals[i].source, element, low),
             at(data, element, low), high - low);
    }
    int parted = local_part(group, err);
    return rc < 0 ? rc : parted;
}

int local_reduce_scatter(struct fabric_group *group, enum element element,
                         const struct collective_part *parts, int count, struct error *err)
{
    struct meeting *meeting = group->meeting;
    struct arrival arrival = {REDUCE_SCATTER, element, .parts = parts, .count = (size_t)count};
    int rc = local_meet(group, &arrival, err);
    if (rc < 0)
        return rc;
    for (int p = 0; p < count; p++) {
        size_t offset = sum(parts[p].counts, group->me);
        for (int i = 0; i < meeting->count; i++)
            group->parts[i] = at(meeting->arrivals[i].parts[p].source, element, offset);
        reduce(group, element, parts[p].destination, parts[p].counts[group->me], REDUCTION_SUM);
    }
    return local_part(group, err);
}

int local_all_gather(struct fabric_group *group, enum element element,
                     const struct collective_part *parts, int count, struct error *err)
{
    struct arrival arrival = {ALL_GATHER, element, .parts = parts, .count = (size_t)count};
    int rc = local_meet(group, &arrival, err);
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
    return local_part(group, err);
}

int local_all_to_all(struct fabric_group *group, enum element element, const void *source,
                     const size_t *sends, void *destination, const size_t *receives,
                     struct error *err)
{
    struct arrival arrival = {ALL_TO_ALL, element, .source = source, .sends = sends,
                              .receives = receives};
    int rc = local_meet(group, &arrival, err);
    if (rc < 0)
        return rc;
    size_t offset = 0;
    for (int i = 0; i < group->meeting->count; i++) {
        const struct arrival *other = &group->meeting->arrivals[i];
        take(group, i, element, at(other->source, element, sum(other->sends, group->me)),
             at(destination, element, offset), receives[i]);
        offset += receives[i];
    }
    return local_part(group, err);
}

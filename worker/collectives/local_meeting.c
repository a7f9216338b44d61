/* local_meeting.c - how the threads of a group meet and part. Everybody brings the arguments of its
 * call, learns whether they are consistent, and leaves when nobody reads its memory any more. */
#include "worker/collectives/local.h"

#include <errno.h>

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

/* Check that two members' calls are consistent: `first` sends `second` what that receives, or both
 * name the same chunks. */
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
    /* Comparing all with the first is enough, except where what is sent differs by pair. */
    int rc = 0;
    int firsts = meeting->arrivals[0].call == ALL_TO_ALL ? meeting->count : 1;
    for (int i = 0; i < firsts && rc == 0; i++)
        for (int j = 0; j < meeting->count && rc == 0; j++)
            rc = pair_agrees(meeting, i, j);
    return rc;
}

static void barrier_pass(struct meeting *meeting)
{
    meeting->waiting = 0;
    meeting->barrier++;
    for (int i = 0; i < meeting->count; i++)
        meeting->arrivals[i].here = false;
    pthread_cond_broadcast(&meeting->changed);
}

/* End the group for all members, with the same error. */
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

/* Why a member need not wait any longer, as an errno; 0: it has to wait. */
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

int local_meet(struct fabric_group *group, const struct arrival *arrival, struct error *err)
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

int local_part(struct fabric_group *group, struct error *err)
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

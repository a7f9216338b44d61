/* ranks.c - maps the devices granted to a job to its ranks.
 *
 * A grant is unordered and may contain more devices than the plan uses. */
#include "coordinator/jobs/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"

/* The index of the device among the ranks from `first` on; count if it is not there. */
static size_t find_device(const struct job_rank *ranks, size_t first, size_t count,
                          const struct device_ref *device)
{
    size_t i = first;
    while (i < count && !device_ref_equal(&ranks[i].device, device))
        i++;
    return i;
}

/* Move the ranks of the plan's devices to the front, in the plan's order. */
static int put_in_order(struct job_rank *ranks, size_t granted, const struct device_ref *devices,
                        size_t count, struct error *err)
{
    for (size_t rank = 0; rank < count; rank++) {
        size_t found = find_device(ranks, rank, granted, &devices[rank]);
        if (found == granted)
            return error_set(err, -EINVAL,
                             "rank %zu of the plan is on %s/%u, which was not granted or is "
                             "another rank's",
                             rank, devices[rank].worker, devices[rank].index);
        struct job_rank moved = ranks[rank];
        ranks[rank] = ranks[found];
        ranks[found] = moved;
    }
    return 0;
}

/* The plan's ranks train; of the others, those that may have state hand it over and are ordered
 * behind them. Returns the new number of ranks. */
static size_t set_roles(struct job_rank *ranks, size_t granted, size_t planned)
{
    size_t count = planned;
    for (size_t i = 0; i < planned; i++)
        ranks[i].role = JOB_RANK_TRAINS;
    for (size_t i = planned; i < granted; i++)
        if (ranks[i].role != JOB_RANK_TRAINS) {
            ranks[count] = ranks[i];
            ranks[count++].role = JOB_RANK_GIVES;
        }
    return count;
}

int job_order_ranks(struct job *job, const struct device_ref *devices, size_t count,
                    struct error *err)
{
    if (count < job->devices_min || count > job_trainers(job))
        return error_set(err, -EINVAL, "%s: the plan uses %zu devices of %zu granted, at least %u",
                         job->id, count, job_trainers(job), job->devices_min);
    struct job_rank *ranks = xcalloc(job->rank_count, sizeof *ranks);
    memcpy(ranks, job->ranks, job->rank_count * sizeof *ranks);
    int rc = put_in_order(ranks, job->rank_count, devices, count, err);
    if (rc < 0) {
        free(ranks);
        return error_prefix(err, rc, "%s", job->id);
    }
    free(job->ranks);
    job->ranks = ranks;
    job->rank_count = set_roles(ranks, job->rank_count, count);
    return 0;
}

int job_check_rank(const struct job *job, unsigned rank, struct error *err)
{
    if (rank >= job->rank_count)
        return error_set(err, -EINVAL, "%s has no rank %u, its ranks are 0 to %zu", job->id, rank,
                         job->rank_count - 1);
    return 0;
}

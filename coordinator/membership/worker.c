/* worker.c - a worker's record: copies, and names of its states. */
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/membership/internal.h"

struct worker *worker_copy(const struct worker *worker)
{
    size_t count = worker->report->device_count;
    struct worker *copy = xcalloc(1, sizeof *copy);
    *copy = *worker;
    copy->report = hardware_report_copy(worker->report);
    copy->holders = xcalloc(count, sizeof *copy->holders);
    memcpy(copy->holders, worker->holders, count * sizeof *copy->holders);
    return copy;
}

void worker_destroy(struct worker *worker)
{
    if (!worker)
        return;
    hardware_report_destroy(worker->report);
    free(worker->holders);
    free(worker);
}

enum worker_state worker_state(const struct worker *worker)
{
    if (worker->dead)
        return WORKER_LOST;
    if (worker->suspect)
        return WORKER_SUSPECT;
    return worker->draining ? WORKER_DRAINING : WORKER_ALIVE;
}

const char *worker_state_name(enum worker_state state)
{
    static const char *const names[] = {
        [WORKER_ALIVE] = "ALIVE",
        [WORKER_SUSPECT] = "SUSPECT",
        [WORKER_DRAINING] = "DRAINING",
        [WORKER_LOST] = "LOST",
    };
    return names[state];
}

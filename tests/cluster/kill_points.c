/* kill_points.c - the wrappers, and which of them strikes. */
#include "tests/cluster/kill_points.h"

#include "common/rpc/server.h"
#include "coordinator/assignments/assignments.h"
#include "coordinator/jobs/jobs.h"
#include "coordinator/membership/membership.h"
#include "coordinator/planning/queue.h"
#include "coordinator/store/store.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

void point_passed(const char *name)
{
    static const char *chosen;
    static long left = -1;
    if (left < 0) {
        const char *count = getenv("GIMBAL_KILL_COUNT");
        chosen = getenv("GIMBAL_KILL_POINT");
        left = chosen && count ? strtol(count, NULL, 10) : 0;
    }
    if (left > 0 && strcmp(name, chosen) == 0 && --left == 0)
        raise(SIGKILL);
}

KILL_POINTS(POINT_WRAP, POINT_WRAP_VOID)

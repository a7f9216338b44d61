/* kill_points.c - the wrappers: kill, call, kill. */
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

static void point(const char *name)
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

#define WRAP(type, name, parameters, arguments)                                                    \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        point("before " #name);                                                                    \
        type result = __real_##name arguments;                                                     \
        point("after " #name);                                                                     \
        return result;                                                                             \
    }
#define WRAP_VOID(name, parameters, arguments)                                                     \
    void __real_##name parameters;                                                                 \
    void __wrap_##name parameters;                                                                 \
    void __wrap_##name parameters                                                                  \
    {                                                                                              \
        point("before " #name);                                                                    \
        __real_##name arguments;                                                                   \
        point("after " #name);                                                                     \
    }

KILL_POINTS(WRAP, WRAP_VOID)

/* drills.c - the table of faults. */
#include "coordinator/resources/drills.h"

#include "common/base/units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct drill_fault faults[] = {
    [GIMBAL__DRILL_FAULT__KILL_EXECUTOR] = {"kill-executor", false, false},
    [GIMBAL__DRILL_FAULT__KILL_WORKER] = {"kill-worker", false, false},
    [GIMBAL__DRILL_FAULT__STOP_EXECUTOR] = {"stop", false, false},
    [GIMBAL__DRILL_FAULT__CUT_LINK] = {"cut-link", true, false},
    [GIMBAL__DRILL_FAULT__SLOW_LINK] = {"slow-link", true, true},
    [GIMBAL__DRILL_FAULT__FILL_DISK] = {"fill-disk", true, false},
};
#define FAULTS (sizeof faults / sizeof *faults)

const struct drill_fault *drill_fault(Gimbal__DrillFault number)
{
    return (size_t)number < FAULTS ? &faults[number] : NULL;
}

int drill_find(const char *name, Gimbal__DrillFault *out, struct error *err)
{
    char known[128] = "";
    for (size_t i = 0; i < FAULTS; i++) {
        size_t used = strlen(known);
        if (strcmp(faults[i].name, name) == 0) {
            *out = (Gimbal__DrillFault)i;
            return 0;
        }
        snprintf(known + used, sizeof known - used, "%s%s",
                 i == 0            ? ""
                 : i + 1 == FAULTS ? " or "
                                   : ", ",
                 faults[i].name);
    }
    return error_set(err, -EINVAL, "unknown fault '%.40s': write %s", name, known);
}

int drill_check_times(const struct drill_fault *fault, uint32_t for_ms, uint32_t delay_ms,
                      struct error *err)
{
    if (!fault->lasts && for_ms > 0)
        return error_set(err, -EINVAL, "%s is done at once: it takes no time", fault->name);
    if (fault->lasts && (for_ms == 0 || for_ms > DRILL_FOR_S_MAX * 1000u))
        return error_set(err, -EINVAL, "%s takes a time, at most %d s", fault->name,
                         DRILL_FOR_S_MAX);
    if (!fault->delays && delay_ms > 0)
        return error_set(err, -EINVAL, "%s takes no delay", fault->name);
    if (fault->delays && (delay_ms == 0 || delay_ms > DRILL_DELAY_S_MAX * 1000u))
        return error_set(err, -EINVAL, "%s takes a delay, from 1 ms to %d s", fault->name,
                         DRILL_DELAY_S_MAX);
    return 0;
}

char *drill_print_times(const Gimbal__DrillRequest *request, char *out, size_t size)
{
    char delay[32], lasting[32], by[48] = "", during[48] = "";
    if (request->delay_ms > 0)
        snprintf(by, sizeof by, " by %s",
                 units_print_seconds(delay, sizeof delay, request->delay_ms / 1e3));
    if (request->for_ms > 0)
        snprintf(during, sizeof during, " for %s",
                 units_print_seconds(lasting, sizeof lasting, request->for_ms / 1e3));
    snprintf(out, size, "%s%s", by, during);
    return out;
}

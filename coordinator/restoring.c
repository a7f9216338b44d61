/* restoring.c - restores the store from a backup, and tells the operator what that means. */
#include "coordinator/restoring.h"

#include "common/base/memory.h"
#include "common/config/state.h"
#include "coordinator/store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int coordinator_state(const struct coordinator_settings *settings, char **out, struct error *err)
{
    *out = settings->state ? xstrdup(settings->state) : state_folder("coordinator");
    if (*out)
        return 0;
    return error_set(err, -EINVAL, "HOME is not set: name a folder for the store with --state DIR");
}

static void tell(const char *state, const struct store_restored *restored)
{
    time_t copied = (time_t)(restored->copied_ms / 1000);
    struct tm parts;
    char when[32];
    strftime(when, sizeof when, "%F %T UTC", gmtime_r(&copied, &parts));
    printf("restored %s as of %s, %" PRIu64 " job%s that had not ended\n", state, when,
           restored->jobs_open, restored->jobs_open == 1 ? "" : "s");
    if (restored->aside)
        printf("the store that was there is now %s\n", restored->aside);
    puts(
        "start gimbal-coordinator on it: workers come back by themselves, and jobs go on from the\n"
        "memory of their executors, from a checkpoint, or from their first step");
    puts("not known any more: jobs, nodes and users since then; who was revoked since then has to "
         "be\n"
         "revoked again, and join tokens have to be issued anew");
}

int restore_from(const struct coordinator_settings *settings, const char *file, struct error *err)
{
    struct store_restored restored = {0};
    struct timespec now;
    char *state;
    int rc = coordinator_state(settings, &state, err);
    if (rc < 0)
        return rc;
    clock_gettime(CLOCK_REALTIME, &now);
    rc = store_restore(state, file, (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000,
                       &restored, err);
    if (rc == 0)
        tell(state, &restored);
    free(restored.aside);
    free(state);
    return rc < 0 ? error_prefix(err, rc, "restore") : 0;
}

/* cpuset.c - parses, divides and applies sets of cores. */
#include "worker/hardware/cpuset.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

int cpuset_parse(const char *text, size_t size, cpu_set_t *out, struct error *err)
{
    const char *at = text, *end = text + size;
    CPU_ZERO(out);
    while (at < end) {
        char *next;
        long low = strtol(at, &next, 10), high = low;
        if (next == at || low < 0 || low >= CPU_SETSIZE)
            break;
        at = next;
        if (at < end && *at == '-') {
            high = strtol(at + 1, &next, 10);
            if (next == at + 1 || high < low || high >= CPU_SETSIZE)
                break;
            at = next;
        }
        for (long cpu = low; cpu <= high; cpu++)
            CPU_SET((size_t)cpu, out);
        if (at == end)
            return 0;
        if (*at++ != ',')
            break;
    }
    return error_set(err, -EINVAL, "'%.*s' is not a set of cores; write like 0-3,8", (int)size,
                     text);
}

int cpuset_parse_list(const char *text, cpu_set_t out[CPUSETS_MAX], struct error *err)
{
    int count = 0;
    for (;;) {
        size_t size = strcspn(text, ";");
        if (count == CPUSETS_MAX)
            return error_set(err, -EINVAL, "more than %d devices in one process", CPUSETS_MAX);
        int rc = cpuset_parse(text, size, &out[count++], err);
        if (rc < 0)
            return rc;
        if (!text[size])
            return count;
        text += size + 1;
    }
}

void cpuset_share(int count, cpu_set_t out[CPUSETS_MAX])
{
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all) < 0) /* more processors than a set can name */
        memset(&all, 0xff, sizeof all);
    int cores = CPU_COUNT(&all), seen = 0;
    for (int i = 0; i < count; i++)
        CPU_ZERO(&out[i]);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        if (cores >= count)
            CPU_SET(cpu, &out[seen * count / cores]);
        for (int i = seen; i < count && cores < count; i += cores)
            CPU_SET(cpu, &out[i]);
        seen++;
    }
}

int cpuset_devices(const char *list, int count, cpu_set_t out[CPUSETS_MAX], struct error *err)
{
    if (count > CPUSETS_MAX)
        return error_set(err, -EINVAL, "more than %d ranks in one process", CPUSETS_MAX);
    if (!list) {
        cpuset_share(count, out);
        return count;
    }
    int found = cpuset_parse_list(list, out, err);
    if (found >= 0 && count && found != count)
        return error_set(err, -EINVAL, "--devices has %d sets for %d ranks", found, count);
    return found;
}

int cpuset_bind(const cpu_set_t *set, int *threads, struct error *err)
{
    int rc = pthread_setaffinity_np(pthread_self(), sizeof *set, set);
    *threads = CPU_COUNT(set);
    return rc ? error_set(err, -rc, "bind to %d cores: %s", CPU_COUNT(set), strerror(rc)) : 0;
}

/* process.c - reads getrusage(2), getrlimit(2) and /proc/self. */
#include "coordinator/metrics/process.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds(const struct timeval *time)
{
    return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

static void add_processor_time(struct exposition *exposition)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) < 0)
        return;
    exposition_family(exposition, "process_cpu_seconds_total", EXPOSITION_COUNTER,
                      "Time on processors, of the user and of the system.");
    exposition_add(exposition, seconds(&usage.ru_utime) + seconds(&usage.ru_stime), NULL);
}

static void add_memory(struct exposition *exposition)
{
    unsigned long all, resident;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return;
    if (fscanf(file, "%lu %lu", &all, &resident) == 2) {
        double page = (double)sysconf(_SC_PAGESIZE);
        exposition_family(exposition, "process_virtual_memory_bytes", EXPOSITION_GAUGE,
                          "Addresses that are in use.");
        exposition_add(exposition, page * (double)all, NULL);
        exposition_family(exposition, "process_resident_memory_bytes", EXPOSITION_GAUGE,
                          "Memory that is in use.");
        exposition_add(exposition, page * (double)resident, NULL);
    }
    fclose(file);
}

static void add_descriptors(struct exposition *exposition)
{
    struct rlimit limit;
    DIR *directory = opendir("/proc/self/fd");
    if (!directory)
        return;
    double count = -1; /* the directory's own */
    for (struct dirent *entry; (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    closedir(directory);
    exposition_family(exposition, "process_open_fds", EXPOSITION_GAUGE, "Open descriptors.");
    exposition_add(exposition, count, NULL);
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    exposition_family(exposition, "process_max_fds", EXPOSITION_GAUGE,
                      "Descriptors that may be open.");
    exposition_add(exposition, (double)limit.rlim_cur, NULL);
}

void metrics_add_process(struct exposition *exposition, double started_s)
{
    exposition_family(exposition, "process_start_time_seconds", EXPOSITION_GAUGE,
                      "When it was started, since 1970.");
    exposition_add(exposition, started_s, NULL);
    add_processor_time(exposition);
    add_memory(exposition);
    add_descriptors(exposition);
}

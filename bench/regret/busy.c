/* busy.c - the time account of the processors in /proc/stat, less what this process has used. */
#include "bench/regret/busy.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* proc(5): user, nice, system, idle, iowait, irq, softirq, steal. */
#define FIELDS 8
#define IDLE 3
#define IOWAIT 4

static double own_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void read_processors(double *all_s, double *others_s)
{
    unsigned long long ticks[FIELDS] = {0};
    double all = 0;
    FILE *file = fopen("/proc/stat", "re");
    if (!file || fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0], &ticks[1],
                        &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]) != FIELDS)
        perror("/proc/stat");
    if (file)
        fclose(file);
    for (int i = 0; i < FIELDS; i++)
        all += (double)ticks[i];
    double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    *all_s = all * tick_s;
    *others_s = (all - (double)ticks[IDLE] - (double)ticks[IOWAIT]) * tick_s - own_s();
}

void busy_begin(struct busy *busy)
{
    read_processors(&busy->all_s, &busy->others_s);
}

void busy_end(struct busy *busy)
{
    double all_s, others_s;
    read_processors(&all_s, &others_s);
    busy->elsewhere = (others_s - busy->others_s) / (all_s - busy->all_s);
    busy->elsewhere = busy->elsewhere > 0 ? busy->elsewhere : 0;
    if (getloadavg(&busy->load, 1) != 1)
        busy->load = 0;
}

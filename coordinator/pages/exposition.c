/* exposition.c - the format is described at
 * https://prometheus.io/docs/instrumenting/exposition_formats/. What this process uses is read from
 * getrusage(2), getrlimit(2) and /proc/self. */
#include "coordinator/pages/exposition.h"

#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/memory.h"

struct exposition {
    FILE *file;
    char *text;
    size_t size;
    const char *name; /* of the family */
};

struct exposition *exposition_create(void)
{
    struct exposition *exposition = xcalloc(1, sizeof *exposition);
    exposition->file = open_memstream(&exposition->text, &exposition->size);
    if (!exposition->file)
        abort();
    return exposition;
}

char *exposition_finish(struct exposition *exposition, size_t *size)
{
    if (fclose(exposition->file) != 0)
        abort(); /* out of memory */
    char *text = exposition->text;
    *size = exposition->size;
    free(exposition);
    return text;
}

void exposition_family(struct exposition *exposition, const char *name, enum exposition_kind kind,
                       const char *help)
{
    static const char *const kinds[] = {[EXPOSITION_GAUGE] = "gauge",
                                        [EXPOSITION_COUNTER] = "counter",
                                        [EXPOSITION_SUMMARY] = "summary"};
    exposition->name = name;
    fprintf(exposition->file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kinds[kind]);
}

/* In quotes, with characters escaped that would end the string or the line. */
static void exposition_put_text(FILE *file, const char *text)
{
    putc('"', file);
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            putc('\\', file);
        if (*text == '\n')
            fputs("\\n", file);
        else
            putc(*text, file);
    }
    putc('"', file);
}

static void exposition_put_label(FILE *file, const char *before, const char *label,
                                 const char *value)
{
    fprintf(file, "%s%s=", before, label);
    exposition_put_text(file, value);
}

static void exposition_put_value(FILE *file, double value)
{
    if (isfinite(value))
        fprintf(file, " %.15g\n", value);
    else
        fprintf(file, " %s\n", isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
}

void exposition_add(struct exposition *exposition, double value, ...)
{
    FILE *file = exposition->file;
    const char *label, *before = "{";
    va_list labels;
    fputs(exposition->name, file);
    va_start(labels, value);
    while ((label = va_arg(labels, const char *))) {
        exposition_put_label(file, before, label, va_arg(labels, const char *));
        before = ",";
    }
    va_end(labels);
    if (*before == ',')
        putc('}', file);
    exposition_put_value(file, value);
}

/* The suffix of a summary's name, and its label if it has one. */
static void exposition_put_part(const struct exposition *exposition, const char *part,
                                const char *label, const char *value, double number)
{
    fprintf(exposition->file, "%s%s", exposition->name, part);
    if (label) {
        exposition_put_label(exposition->file, "{", label, value);
        putc('}', exposition->file);
    }
    exposition_put_value(exposition->file, number);
}

void exposition_add_summary(struct exposition *exposition, const struct histogram *histogram,
                            double unit, const char *label, const char *value)
{
    static const struct {
        const char *text;
        double share;
    } quantiles[] = {{"0.5", 0.5}, {"0.99", 0.99}};
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        double number = histogram->count > 0
                            ? unit * (double)histogram_quantile(histogram, quantiles[i].share)
                            : NAN;
        if (label)
            exposition_add(exposition, number, label, value, "quantile", quantiles[i].text, NULL);
        else
            exposition_add(exposition, number, "quantile", quantiles[i].text, NULL);
    }
    exposition_put_part(exposition, "_sum", label, value, unit * (double)histogram->sum);
    exposition_put_part(exposition, "_count", label, value, (double)histogram->count);
}

/* ---- this process ---- */

static double process_seconds(const struct timeval *time)
{
    return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

static void process_add_time(struct exposition *exposition)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) < 0)
        return;
    exposition_family(exposition, "process_cpu_seconds_total", EXPOSITION_COUNTER,
                      "Time on processors, of the user and of the system.");
    exposition_add(exposition, process_seconds(&usage.ru_utime) + process_seconds(&usage.ru_stime),
                   NULL);
}

static void process_add_memory(struct exposition *exposition)
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

static void process_add_descriptors(struct exposition *exposition)
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

void exposition_add_process(struct exposition *exposition, double started_s)
{
    exposition_family(exposition, "process_start_time_seconds", EXPOSITION_GAUGE,
                      "When it was started, since 1970.");
    exposition_add(exposition, started_s, NULL);
    process_add_time(exposition);
    process_add_memory(exposition);
    process_add_descriptors(exposition);
}

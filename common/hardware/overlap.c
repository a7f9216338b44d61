/* overlap.c - compares sets of cores that are written as text. */
#include "common/hardware/hardware.h"

#include <stdlib.h>

struct cores {
    unsigned long first, last;
};

/* Read the next range of a list, "8" or "0-3". Returns what follows it, or NULL: there is none. */
static const char *next_range(const char *list, struct cores *range)
{
    char *end;
    if (!list || *list < '0' || *list > '9')
        return NULL;
    range->first = range->last = strtoul(list, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        range->last = strtoul(end + 1, &end, 10);
    if (range->last < range->first)
        return NULL;
    return *end == ',' ? end + 1 : end;
}

static double count_common(const struct cores *range, const char *list)
{
    struct cores other;
    double count = 0;
    while ((list = next_range(list, &other))) {
        unsigned long first = range->first > other.first ? range->first : other.first;
        unsigned long last = range->last < other.last ? range->last : other.last;
        count += first <= last ? (double)(last - first) + 1 : 0;
    }
    return count;
}

double hardware_overlap(const char *of, const char *with)
{
    struct cores range;
    double all = 0, common = 0;
    while ((of = next_range(of, &range))) {
        all += (double)(range.last - range.first) + 1;
        common += count_common(&range, with);
    }
    return all > 0 ? common / all : 0;
}

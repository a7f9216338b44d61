/* links.c - takes medians over the links of a level and reports outliers. */
#include "coordinator/cli/doctor/links.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "coordinator/telemetry/median.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FAR 2.0
#define LATENCY_NOISE_S 100e-6 /* variation of any round trip on a busy processor */

static bool is_peer(const struct link_figure *a, const struct link_figure *b)
{
    return strcmp(a->level, b->level) == 0 && strcmp(a->like, b->like) == 0;
}

static double latency_of(const struct link_figure *figure)
{
    return figure->latency_s;
}

static double bandwidth_of(const struct link_figure *figure)
{
    return figure->bytes_per_s;
}

/* The median of a value over the links of this level and model that have it. */
static double median_of(const struct link_figure *figures, size_t count,
                        const struct link_figure *of,
                        double (*value)(const struct link_figure *figure))
{
    double *values = xcalloc(count + 1, sizeof *values);
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (is_peer(&figures[i], of) && value(&figures[i]) > 0)
            values[known++] = value(&figures[i]);
    double middle = median(values, known);
    free(values);
    return middle;
}

double links_median_latency(const struct link_figure *figures, size_t count,
                            const struct link_figure *of)
{
    return median_of(figures, count, of, latency_of);
}

double links_median_bandwidth(const struct link_figure *figures, size_t count,
                              const struct link_figure *of)
{
    return median_of(figures, count, of, bandwidth_of);
}

static const char *print_link(char *out, size_t size, const struct link_figure *figure)
{
    if (strcmp(figure->from, figure->to) == 0)
        snprintf(out, size, "between the devices of %s", figure->from);
    else
        snprintf(out, size, "from %s to %s", figure->from, figure->to);
    return out;
}

static bool judge(const struct link_figure *figures, size_t count, const struct link_figure *figure,
                  struct findings *out)
{
    char where[160], own[32], others[32];
    double bandwidth = links_median_bandwidth(figures, count, figure);
    double latency = links_median_latency(figures, count, figure);
    bool slow = figure->bytes_per_s > 0 && figure->bytes_per_s * FAR < bandwidth;
    bool late = figure->latency_s > FAR * latency + LATENCY_NOISE_S;
    if (slow)
        finding_warn(out,
                     "check what else sends data there and how slots and ports are wired, then "
                     "restart the worker to measure again",
                     "%s/s %s, while half of such links have %s/s or more",
                     units_print_bytes(own, sizeof own, figure->bytes_per_s),
                     print_link(where, sizeof where, figure),
                     units_print_bytes(others, sizeof others, bandwidth));
    if (late)
        finding_warn(out, "check what else runs on that node, and the route to it",
                     "a message takes %s %s, while half of such links take %s or less",
                     units_print_seconds(own, sizeof own, figure->latency_s),
                     print_link(where, sizeof where, figure),
                     units_print_seconds(others, sizeof others, latency));
    return slow || late;
}

/* Whether no earlier link has its level and model. */
static bool is_first(const struct link_figure *figures, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (is_peer(&figures[i], &figures[index]))
            return false;
    return true;
}

static void judge_level(const struct link_figure *figures, size_t count, size_t first,
                        struct findings *out)
{
    const struct link_figure *of = &figures[first];
    size_t links = 0, found = 0;
    for (size_t i = first; i < count; i++)
        if (is_peer(&figures[i], of)) {
            links++;
            found += judge(figures, count, &figures[i], out);
        }
    if (found == 0)
        finding_ok(out, "%zu link%s %s nodes%s%s, none much slower than the others", links,
                   links == 1 ? "" : "s", of->level, *of->like ? " of " : "", of->like);
}

void links_judge(const struct link_figure *figures, size_t count, struct findings *out)
{
    for (size_t i = 0; i < count; i++)
        if (is_first(figures, i))
            judge_level(figures, count, i, out);
}

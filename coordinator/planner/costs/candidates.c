/* candidates.c - see candidates.h. For the trade-off every plan is compared with every other, which
 * is quick enough for a few hundred. */
#include "coordinator/planner/costs/candidates.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "coordinator/planner/costs/plan_diff.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PROVED_GAP 5e-4 /* smaller gaps would print as 0.0 % */

void candidates_add(struct planner_result *out, const struct candidate *candidate)
{
    out->candidates = grow(out->candidates, out->count, &out->capacity, sizeof *out->candidates);
    out->candidates[out->count++] = *candidate;
}

void candidates_finish(struct planner_result *result)
{
    for (size_t i = 0; i < result->count; i++)
        plan_destroy(result->candidates[i].plan);
    free(result->candidates);
    *result = (struct planner_result){0};
}

bool candidates_fits(const struct planner_result *out)
{
    for (size_t i = 0; i < out->count; i++)
        if (out->candidates[i].fits)
            return true;
    return false;
}

bool candidates_shorter(const struct plan *plan, const struct plan *other)
{
    double a = plan->predicted.step_time_s, b = other->predicted.step_time_s;
    return a < b || (a == b && strcmp(plan->id, other->id) < 0);
}

struct plan *candidates_best(const struct planner_result *out, size_t first)
{
    struct plan *best = NULL;
    for (size_t i = first; i < out->count; i++)
        if (out->candidates[i].fits && (!best || candidates_shorter(out->candidates[i].plan, best)))
            best = out->candidates[i].plan;
    return best;
}

static bool is_beaten(const struct plan *plan, const struct plan *by)
{
    double slower_s = plan->predicted.step_time_s - by->predicted.step_time_s;
    double more_bytes =
        (double)plan->predicted.memory_bytes_max - (double)by->predicted.memory_bytes_max;
    int more_devices = plan_ranks(plan) - plan_ranks(by);
    return slower_s >= 0 && more_bytes >= 0 && more_devices >= 0 &&
           (slower_s > 0 || more_bytes > 0 || more_devices > 0);
}

static bool is_equal(const struct plan *a, const struct plan *b)
{
    return a->predicted.step_time_s == b->predicted.step_time_s &&
           a->predicted.memory_bytes_max == b->predicted.memory_bytes_max &&
           plan_ranks(a) == plan_ranks(b);
}

static int by_devices(const void *first, const void *second)
{
    const struct plan *a = *(const struct plan *const *)first,
                      *b = *(const struct plan *const *)second;
    if (plan_ranks(a) != plan_ranks(b))
        return plan_ranks(b) - plan_ranks(a);
    return a->predicted.step_time_s < b->predicted.step_time_s ? -1 : 1;
}

const struct plan **tradeoff_find(const struct planner_result *result, size_t *count)
{
    const struct plan **plans = xcalloc(result->count, sizeof(struct plan *));
    *count = 0;
    for (size_t i = 0; i < result->count; i++) {
        const struct plan *plan = result->candidates[i].plan;
        bool kept = result->candidates[i].fits;
        for (size_t j = 0; j < result->count && kept; j++) {
            const struct plan *other = result->candidates[j].plan;
            kept = !result->candidates[j].fits ||
                   (!is_beaten(plan, other) && (j >= i || !is_equal(plan, other)));
        }
        if (kept)
            plans[(*count)++] = plan;
    }
    if (*count > 1)
        qsort(plans, *count, sizeof *plans, by_devices);
    return plans;
}

void candidates_alternatives(const struct planner_result *out, struct plan *best)
{
    size_t count;
    assert(best && "nobody asks where nothing fits");
    const struct plan **plans = tradeoff_find(out, &count);
    for (size_t i = 0; i < count && i < PLAN_ALTERNATIVES_MAX; i++) {
        struct plan_alternative *alternative = &best->predicted.alternatives[i];
        strcpy(alternative->id, plans[i]->id);
        alternative->step_time_s = plans[i]->predicted.step_time_s;
        alternative->memory_bytes_max = plans[i]->predicted.memory_bytes_max;
        alternative->devices = plan_ranks(plans[i]);
        best->predicted.alternative_count = (int)i + 1;
    }
    free(plans);
}

static const struct planner_device *device_of(const struct planner_request *request, int rank)
{
    return &request->devices[rank];
}

/* The first rank of a plan that does not fit whose device is too small. Where the ranks of a stage
 * were not told apart, each is taken to need as much as the stage's largest. */
static int find_tight(const struct planner_request *request, const struct candidate *candidate,
                      uint64_t *bytes)
{
    const struct plan *plan = candidate->plan;
    int rank = 0, inside;
    *bytes = candidate->tight_bytes;
    if (candidate->tight_rank >= 0)
        return candidate->tight_rank;
    for (;; rank++) {
        *bytes = plan->stages[plan_rank_stage(plan, rank, &inside)].memory_bytes;
        if (*bytes > planner_memory_limit(request, rank) || rank + 1 == plan_ranks(plan))
            return rank;
    }
}

/* Writes ", 260 MiB of it for its libraries", or the empty string. */
static const char *print_libraries(char *out, size_t size, const struct planner_device *device)
{
    char bytes[32];
    out[0] = '\0';
    if (device->library_bytes > 0)
        snprintf(out, size, ", %s of it for its libraries",
                 units_print_bytes(bytes, sizeof bytes, (double)device->library_bytes));
    return out;
}

/* Why the limit is below the device's size, or the empty string. */
static const char *name_limit(const struct planner_request *request, int rank)
{
    const struct planner_device *device = device_of(request, rank);
    if (planner_memory_limit(request, rank) < device->memory_bytes)
        return " (plan.memory)";
    return device->ran_out ? " (a rank of the job ran out of memory there)" : "";
}

char *candidates_print_tight(const struct planner_request *request,
                             const struct candidate *candidate, char *out, size_t size)
{
    char need[32], have[32], libraries[64];
    uint64_t bytes;
    int rank = find_tight(request, candidate, &bytes);
    snprintf(out, size, "%s on %s%s, where %s may be used%s",
             units_print_bytes(need, sizeof need, (double)bytes), device_of(request, rank)->name,
             print_libraries(libraries, sizeof libraries, device_of(request, rank)),
             units_print_bytes(have, sizeof have, (double)planner_memory_limit(request, rank)),
             name_limit(request, rank));
    return out;
}

/* What the search proved of the chosen plan, as in "chosen, at most 4.9 % from the best". */
static char *print_proof(char *out, size_t size, const struct plan *plan)
{
    const char *of = plan->predicted.roles;
    if (plan->predicted.lower_bound_s <= 0)
        snprintf(out, size, "chosen");
    else if (plan->predicted.gap < PROVED_GAP)
        snprintf(out, size, "chosen, proved the best%s%s", of[0] ? " of " : "", of);
    else
        snprintf(out, size, "chosen, at most %.1f %% from the best%s%s", 100 * plan->predicted.gap,
                 of[0] ? " of " : "", of);
    return out;
}

/* The first difference between two plans, and how many there are. */
struct difference {
    char text[160];
    int count;
};

static void difference_add(const char *what, const char *first, const char *second, void *context)
{
    struct difference *difference = context;
    if (difference->count++ == 0)
        snprintf(difference->text, sizeof difference->text, "%s: %s, not %s", what, second, first);
}

/* How a candidate differs from the first one whose division reads like its own, as in "p-3c1f with
 * embed: dp8 zero1, not dp8 (and 1 more)"; empty if there is none. */
static char *print_difference(char *out, size_t size, const struct planner_result *result,
                              size_t index)
{
    char own[96], other[96];
    const struct plan *plan = result->candidates[index].plan;
    out[0] = '\0';
    plan_print(own, sizeof own, plan);
    for (size_t i = 0; i < index; i++) {
        const struct plan *earlier = result->candidates[i].plan;
        struct difference difference = {"", 0};
        if (strcmp(plan_print(other, sizeof other, earlier), own) != 0)
            continue;
        plan_diff(earlier, plan, difference_add, &difference, NULL);
        if (difference.count > 1)
            snprintf(out, size, "%s with %s (and %d more)", earlier->id, difference.text,
                     difference.count - 1);
        else if (difference.count == 1)
            snprintf(out, size, "%s with %s", earlier->id, difference.text);
        break;
    }
    return out;
}

/* What there is to say of a candidate behind its figures; may be empty. */
static char *print_remark(char *out, size_t size, const struct planner_result *result, size_t index)
{
    char proof[128] = "", difference[256], copies[64] = "", seconds[32];
    const struct candidate *candidate = &result->candidates[index];
    const struct plan *plan = candidate->plan;
    print_difference(difference, sizeof difference, result, index);
    if (!candidate->fits)
        snprintf(proof, sizeof proof, "does not fit");
    else if (plan == result->best)
        print_proof(proof, sizeof proof, plan);
    if (plan->predicted.copies_time_s > 0)
        snprintf(copies, sizeof copies, "%s more for copies of state",
                 units_print_seconds(seconds, sizeof seconds, plan->predicted.copies_time_s));
    const char *const parts[] = {proof, difference, copies};
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts && used < size; i++)
        if (parts[i][0])
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "; " : "  ", parts[i]);
    return out;
}

void candidates_print(const struct planner_result *result, size_t rows, FILE *out)
{
    fprintf(out, "%-10s %-40s %7s %12s %12s %11s\n", "PLAN", "DIVISION", "DEVICES", "STEP", "TOK/S",
            "MEMORY");
    for (size_t i = 0; i < result->count && (rows == 0 || i < rows); i++) {
        const struct plan *plan = result->candidates[i].plan;
        char division[96], step[32], memory[32], remark[480];
        plan_print(division, sizeof division, plan);
        /* The middle dot is two bytes and one column. */
        int dots = 0;
        for (const char *c = division; *c; c++)
            dots += (unsigned char)*c == 0xc2;
        fprintf(out, "%-10s %-*s %7d %12s %12.0f %11s%s\n", plan->id, 40 + dots, division,
                plan_ranks(plan),
                units_print_seconds(step, sizeof step, plan->predicted.step_time_s),
                plan->predicted.tokens_per_s,
                units_print_bytes(memory, sizeof memory, (double)plan->predicted.memory_bytes_max),
                print_remark(remark, sizeof remark, result, i));
    }
    if (rows && result->count > rows)
        fprintf(out, "and %zu more\n", result->count - rows);
}

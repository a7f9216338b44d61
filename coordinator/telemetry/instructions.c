/* instructions.c - a sorted array: there are at most a few hundred kinds. */
#include "coordinator/telemetry/instructions.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/telemetry/median.h"

void instructions_clear(struct instructions *instructions)
{
    instructions->count = 0;
}

void instructions_finish(struct instructions *instructions)
{
    free(instructions->kinds);
    *instructions = (struct instructions){0};
}

static bool name_good(const char *name)
{
    size_t length = 0;
    for (; name[length]; length++)
        if (name[length] < ' ' || name[length] > '~')
            return false;
    return length > 0 && length < INSTRUCTIONS_NAME_SIZE;
}

static int check(const struct instruction_record *record, struct error *err)
{
    if (!name_good(record->block) || !name_good(record->class))
        return error_set(err, -EINVAL,
                         "a block type and an instruction's class are 1 to %d printable characters",
                         INSTRUCTIONS_NAME_SIZE - 1);
    if (record->count == 0 || !isfinite(record->predicted_s) || record->predicted_s < 0 ||
        !isfinite(record->measured_s) || record->measured_s < 0)
        return error_set(err, -EINVAL,
                         "'%s' of '%s': %llu instructions of %g s, predicted %g s, cannot be",
                         record->class, record->block, (unsigned long long)record->count,
                         record->measured_s, record->predicted_s);
    return 0;
}

/* The index of the kind, or where it would be inserted. */
static size_t place(const struct instructions *instructions, const char *block, const char *class,
                    bool *found)
{
    size_t low = 0, high = instructions->count;
    *found = false;
    while (low < high && !*found) {
        size_t middle = low + (high - low) / 2;
        const struct instruction_sums *kind = &instructions->kinds[middle];
        int order = strcmp(kind->block, block);
        if (order == 0)
            order = strcmp(kind->class, class);
        *found = order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return *found ? high : low;
}

static struct instruction_sums *insert(struct instructions *instructions, size_t index)
{
    instructions->kinds = grow(instructions->kinds, instructions->count, &instructions->capacity,
                               sizeof *instructions->kinds);
    struct instruction_sums *kind = &instructions->kinds[index];
    memmove(kind + 1, kind, (instructions->count - index) * sizeof *kind);
    instructions->count++;
    *kind = (struct instruction_sums){0};
    return kind;
}

int instructions_add(struct instructions *instructions, const struct instruction_record *record,
                     struct error *err)
{
    int rc = check(record, err);
    if (rc < 0)
        return rc;
    bool found;
    size_t index = place(instructions, record->block, record->class, &found);
    if (!found && instructions->count == INSTRUCTIONS_MAX)
        return error_set(err, -ENOSPC,
                         "more than %d kinds of instructions: '%s' of '%s' is left out",
                         INSTRUCTIONS_MAX, record->class, record->block);
    struct instruction_sums *kind =
        found ? &instructions->kinds[index] : insert(instructions, index);
    if (!found) {
        snprintf(kind->block, sizeof kind->block, "%s", record->block);
        snprintf(kind->class, sizeof kind->class, "%s", record->class);
    }
    kind->count += record->count;
    kind->predicted_s += record->predicted_s;
    kind->measured_s += record->measured_s;
    kind->times_s[kind->record_count++ % INSTRUCTIONS_WINDOW] =
        record->measured_s / (double)record->count;
    if (record->predicted_s > 0)
        kind->ratios[kind->ratio_count++ % INSTRUCTIONS_WINDOW] =
            record->measured_s / record->predicted_s;
    return 0;
}

static double window_median(const double *ring, size_t ever)
{
    double values[INSTRUCTIONS_WINDOW];
    size_t count = ever < INSTRUCTIONS_WINDOW ? ever : INSTRUCTIONS_WINDOW;
    memcpy(values, ring, count * sizeof *values);
    return median(values, count);
}

double instruction_time_median_s(const struct instruction_sums *kind)
{
    return window_median(kind->times_s, kind->record_count);
}

double instruction_ratio_median(const struct instruction_sums *kind)
{
    return window_median(kind->ratios, kind->ratio_count);
}

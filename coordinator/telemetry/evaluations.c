/* evaluations.c - an array sorted by step, and one text. */
#include "coordinator/telemetry/evaluations.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"

void evaluations_finish(struct evaluations *evaluations)
{
    free(evaluations->items);
    free(evaluations->text);
    *evaluations = (struct evaluations){0};
}

void evaluations_add(struct evaluations *evaluations, uint64_t step, double loss)
{
    struct evaluation *items = evaluations->items;
    while (evaluations->count && items[evaluations->count - 1].step >= step)
        evaluations->count--;
    if (evaluations->count == EVALUATIONS_MAX)
        memmove(items, items + 1, --evaluations->count * sizeof *items);
    evaluations->items =
        grow(items, evaluations->count, &evaluations->capacity, sizeof *evaluations->items);
    evaluations->items[evaluations->count++] = (struct evaluation){step, loss};
}

void evaluations_set_text(struct evaluations *evaluations, const void *bytes, size_t size)
{
    free(evaluations->text);
    evaluations->text_size = size < EVALUATIONS_TEXT_MAX ? size : EVALUATIONS_TEXT_MAX;
    evaluations->text = xcalloc(1, evaluations->text_size);
    memcpy(evaluations->text, bytes, evaluations->text_size);
}

/* counts.c - see counts.h. */
#include "tests/support/counts.h"

int64_t count_tensor(const struct graph *graph, int tensor)
{
    struct box box = tensor_box(&graph->tensors[tensor], 1);
    return box_count(&box);
}

int64_t count_parameters(const struct graph *graph)
{
    int64_t count = 0;
    for (size_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == TENSOR_WEIGHT)
            count += count_tensor(graph, (int)i);
    return count;
}

int64_t count_words(const struct program *program)
{
    struct program_cursor cursor = {0};
    int64_t words = 0;
    while (program_next(program, PROGRAM_TRAIN, &cursor))
        words += instruction_words(program, cursor.instruction);
    return words;
}

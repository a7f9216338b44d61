/* together.c - consecutive sums of squares, and copies, that the device offers to compute in few
 * launches. A model has hundreds of parameters, most of which are small: a launch each would take
 * longer than the work. */
#include "worker/interpreter/internal.h"

#define TOGETHER 64

static bool overlap(const struct access *a, const struct access *b)
{
    return a->region == b->region && a->low < b->high && b->low < a->high;
}

/* Whether one of two instructions writes what the other touches. */
static bool depends(const struct program *program, const struct instruction *a,
                    const struct instruction *b)
{
    struct access of_a[ACCESSES_MAX], of_b[ACCESSES_MAX];
    int count_a = instruction_accesses(program, a, of_a);
    int count_b = instruction_accesses(program, b, of_b);
    for (int i = 0; i < count_a; i++)
        for (int k = 0; k < count_b; k++)
            if ((of_a[i].writes || of_b[k].writes) && overlap(&of_a[i], &of_b[k]))
                return true;
    return false;
}

/* The instructions of one kind that follow each other in the compute queue from `first` on, at most
 * `left` of them. Copies have to be independent of each other. */
static int collect(const struct program *program, const struct instruction *first, int left,
                   const struct instruction *found[TOGETHER])
{
    int count = 0;
    for (const struct instruction *at = first; count < TOGETHER && count < left; at++) {
        if (at->queue != QUEUE_COMPUTE)
            continue;
        if (at->kind != first->kind)
            break;
        for (int i = 0; i < count && at->kind == INSTRUCTION_COPY; i++)
            if (depends(program, found[i], at))
                return count;
        found[count++] = at;
    }
    return count;
}

static void sum_squares(struct interpreter *in, const struct instruction *const *found, int count,
                        int slot)
{
    struct square_call calls[TOGETHER];
    for (int i = 0; i < count; i++) {
        const struct view view = interpreter_view(in, found[i], 0, slot);
        calls[i] = (struct square_call){view.data, view_elements(&view)};
    }
    in->config.device->square_sum_all(calls, count, interpreter_square_sum(in));
}

static void copy(struct interpreter *in, const struct instruction *const *found, int count,
                 int slot)
{
    struct copy_call calls[TOGETHER];
    for (int i = 0; i < count; i++)
        calls[i] = (struct copy_call){.source = interpreter_view(in, found[i], 0, slot),
                                      .destination = interpreter_view(in, found[i], 1, slot),
                                      .part = found[i]->part};
    in->config.device->copy_all(calls, count);
}

int interpreter_run_together(struct interpreter *in, const struct program_cursor *cursor, int left)
{
    const struct device *device = in->config.device;
    const struct instruction *first = cursor->instruction, *found[TOGETHER];
    bool sums = first->kind == INSTRUCTION_SQUARE_SUM && device->square_sum_all;
    bool copies = first->kind == INSTRUCTION_COPY && device->copy_all;
    int count = sums || copies ? collect(in->program, first, left, found) : 0;
    if (count < 2)
        return 0;
    if (sums)
        sum_squares(in, found, count, cursor->slot);
    else
        copy(in, found, count, cursor->slot);
    return count;
}

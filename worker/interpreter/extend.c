/* extend.c - computes the next positions of a sequence, of which the earlier ones are known.
 *
 * A window of positions is computed as a rank with the role context would compute it: that role
 * says which operands of an operation are split along the sequence. The others, attention's keys
 * and values, are needed from position 0 on. They lie in the saved region, where only a backward
 * pass would overwrite them, so each window finds there what the windows before it have left. */
#include "worker/interpreter/internal.h"

#include "common/placement/role.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

struct window {
    int64_t low, high; /* positions */
};

/* Reduce a view to the window or, if it is not split, to all positions up to the window's end. */
static void window_narrow(struct view *view, const char *dims, bool split,
                          const struct window *window)
{
    const char *s = strchr(dims, 's');
    if (!s)
        return;
    int dim = (int)(s - dims);
    int64_t low = split ? window->low : 0, row = 1;
    for (int i = dim + 1; i < view->box.dims; i++)
        row *= box_length(&view->box, i);
    for (int i = 0; i < dim; i++)
        assert(box_length(&view->box, i) == 1 && "one sample: its positions are contiguous");
    view->data = (char *)view->data + (size_t)(low * row) * element_size(view->element);
    view->box.low[dim] = low;
    view->box.high[dim] = window->high;
}

/* Statistics of forward are there for backward: of a window they need a place, and no more. */
static void window_narrow_call(const struct graph *graph, const struct signature *signature,
                               const struct window *window, struct kernel_call *call)
{
    const struct operation *operation = call->node->operation;
    int output = operation_output(operation);
    struct box boxes[OPERANDS_MAX];
    for (int i = 0; i <= output; i++) {
        const char *dims = graph->tensors[call->node->operands[i]].dims, *s = strchr(dims, 's');
        window_narrow(&call->operand[i], dims, s && signature->operand[i].count[s - dims] > 0,
                      window);
        boxes[i] = call->operand[i].box;
    }
    for (int i = 0; i < operation->statistic_count[FORWARD]; i++)
        call->operand[output + 1 + i].box =
            signature_statistic_box(call->node, &operation->statistics[FORWARD][i], boxes);
}

static void window_compute(struct interpreter *in, const struct instruction *instruction, int slot,
                           const struct window *window)
{
    const struct role *context = role_find("context");
    struct kernel_call call = interpreter_call(in, instruction, slot);
    if (call.node->operation->is_loss)
        return;
    struct signature signature = signature_make(call.node, &context, 1);
    window_narrow_call(in->program->graph, &signature, window, &call);
    in->kernels[instruction->kernel.node]->run[FORWARD][call.phase](&call);
}

static void window_load(const struct interpreter *in, const struct instruction *instruction,
                        int slot, const struct window *window)
{
    const struct program *p = in->program;
    const struct piece *piece = program_pieces(p, instruction);
    const struct tensor *tensor = &p->graph->tensors[p->buffers[piece->buffer].tensor];
    struct view view = interpreter_view(in, instruction, 0, slot);
    if (tensor->targets)
        return;
    window_narrow(&view, tensor->dims, true, window);
    in->config.feed->fill(in->config.feed->context, in->kind, 0, tensor, &view.box, view.data);
}

int interpreter_extends(const struct graph *graph, struct error *err)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        const struct operation *operation = node->operation;
        bool mixes = operation->keys && !operation->causal;
        bool exchanges = operation->exchange && strchr(operation->exchange, 's');
        bool ends =
            strchr(node->dims[0], 's') && !strchr(node->dims[operation_output(operation)], 's');
        if (!operation->is_loss && (mixes || exchanges || ends))
            return error_set(
                err, -EINVAL,
                "%s needs all positions at once; a text is written position by position",
                node->name);
    }
    return 0;
}

/* The forward section of a program of one rank has nothing but loads and kernels. */
int interpreter_extend(struct interpreter *in, int64_t low, int64_t high, struct error *err)
{
    const struct program *p = in->program;
    const struct window window = {low, high};
    struct program_cursor cursor = {0};
    int rc = 0;
    assert(!in->streams && p->ranks == 1 && p->samples == 1 && p->micro_batches == 1);
    in->kind = PROGRAM_EVALUATE;
    while (rc == 0 && program_next(p, PROGRAM_EVALUATE, &cursor)) {
        const struct instruction *instruction = cursor.instruction;
        enum section section = instruction_section(p, instruction);
        if (section == SECTION_WEIGHTS && low == 0)
            rc = interpreter_execute(in, &cursor, err);
        if (section != SECTION_FORWARD)
            continue;
        if (instruction->kind == INSTRUCTION_LOAD)
            window_load(in, instruction, cursor.slot, &window);
        else if (instruction->kind == INSTRUCTION_KERNEL)
            window_compute(in, instruction, cursor.slot, &window);
        else
            assert(!"a program of one rank moves nothing");
    }
    return rc;
}

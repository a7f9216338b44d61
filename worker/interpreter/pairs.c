/* pairs.c - two consecutive forward operations that the device offers to compute in one launch. */
#include "worker/interpreter/internal.h"

/* The next instruction of the compute queue. */
static const struct instruction *behind(const struct instruction *instruction)
{
    do
        instruction++;
    while (instruction->queue != QUEUE_COMPUTE);
    return instruction;
}

/* The kernel that an instruction starts in forward, or NULL if it is anything else. */
static const struct kernel *forward_kernel(const struct interpreter *in,
                                           const struct instruction *instruction)
{
    bool is_one = instruction->kind == INSTRUCTION_KERNEL &&
                  instruction->kernel.direction == FORWARD && instruction->kernel.phase == 0;
    return is_one ? in->kernels[instruction->kernel.node] : NULL;
}

static const struct kernel_pair *find(const struct interpreter *in, const struct kernel *first,
                                      const struct kernel *second)
{
    const struct kernel_pair *pair = in->config.device->pairs;
    while (pair && pair->first && (pair->first != first || pair->second != second))
        pair++;
    return pair && pair->first ? pair : NULL;
}

/* If the operation that begins here has all its `phases` in consecutive instructions: the last of
 * them. Otherwise NULL. */
static const struct instruction *last_phase(const struct instruction *instruction, int phases)
{
    int node = instruction->kernel.node;
    for (int phase = 1; phase < phases; phase++) {
        instruction = behind(instruction);
        if (instruction->kind != INSTRUCTION_KERNEL || instruction->kernel.node != node ||
            instruction->kernel.direction != FORWARD || instruction->kernel.phase != phase)
            return NULL;
    }
    return instruction;
}

int interpreter_run_pair(const struct interpreter *in, const struct program_cursor *cursor,
                         int left)
{
    const struct instruction *first = cursor->instruction;
    if (left < 2 || !forward_kernel(in, first))
        return 0;
    const struct instruction *second = behind(first);
    const struct kernel *kernel = forward_kernel(in, second);
    const struct kernel_pair *pair = kernel ? find(in, forward_kernel(in, first), kernel) : NULL;
    if (!pair)
        return 0;
    int phases = in->program->graph->nodes[second->kernel.node].operation->phases[FORWARD];
    second = phases < left ? last_phase(second, phases) : NULL;
    if (!second)
        return 0;
    const struct kernel_call calls[] = {interpreter_call(in, first, cursor->slot),
                                        interpreter_call(in, second, cursor->slot)};
    return pair->run(&calls[0], &calls[1]) ? 1 + phases : 0;
}

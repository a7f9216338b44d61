/* stopping.c - what a simulated executor does next, and what becomes of that while its process is
 * stopped: nothing, until it goes on; what it is told meanwhile it hears then. */
#include <stdlib.h>

#include "common/base/memory.h"
#include "common/rpc/message.h"
#include "tests/simulation/cluster.h"

static void fire(void *data)
{
    struct executor *executor = data;
    executor->next = NULL;
    executor->then(executor);
}

void executor_after(struct executor *executor, uint64_t delay_ms, executor_cb callback)
{
    world_cancel(executor->next);
    executor->next = NULL;
    executor->then = callback;
    executor->frozen = executor->stopped;
    if (!executor->stopped)
        executor->next = world_after(delay_ms, fire, executor);
}

void executor_rest(struct executor *executor)
{
    world_cancel(executor->next);
    executor->next = NULL;
    executor->frozen = false;
}

bool executor_is_busy(const struct executor *executor)
{
    return executor->next || executor->frozen;
}

void executor_stop(struct executor *executor)
{
    if (executor->stopped || executor->ended)
        return;
    executor->frozen = executor->next != NULL;
    world_cancel(executor->next);
    executor->next = NULL;
    executor->stopped = true;
}

void executor_hold(struct executor *executor, const Gimbal__ExecutorCommand *command)
{
    size_t size;
    void *bytes = message_pack(&command->base, &size);
    executor->held = grow(executor->held, executor->held_count, &executor->held_capacity,
                          sizeof *executor->held);
    executor->held[executor->held_count++] =
        protobuf_c_message_unpack(command->base.descriptor, NULL, size, bytes);
    free(bytes);
}

void executor_drop_held(struct executor *executor)
{
    for (size_t i = 0; i < executor->held_count; i++)
        message_free(executor->held[i]);
    free(executor->held);
    executor->held = NULL;
    executor->held_count = executor->held_capacity = 0;
}

/* What was due is late, what was said is heard, in this order; and a signal is taken last. */
void executor_continue(struct executor *executor)
{
    if (!executor->stopped)
        return;
    executor->stopped = false;
    if (executor->frozen)
        executor_after(executor, 1, executor->then);
    else if (executor->arrived && executor->crew)
        training_meet(executor->crew);
    for (size_t i = 0; i < executor->held_count && !executor->ended; i++)
        executor_take(executor, (const Gimbal__ExecutorCommand *)executor->held[i]);
    executor_drop_held(executor);
    if (executor->terminated && !executor->ended)
        executor_terminate(executor);
}

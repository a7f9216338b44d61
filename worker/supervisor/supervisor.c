/* supervisor.c - creation, time, and leaving. */
#include "worker/supervisor/internal.h"

#include "common/base/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct supervisor *supervisor_create(const char *node, uint32_t device_count, uint64_t seed)
{
    struct supervisor *supervisor = xcalloc(1, sizeof *supervisor);
    supervisor->node = xstrdup(node);
    supervisor->device_count = device_count;
    supervisor->seed = seed;
    supervisor->farewell_ms = UINT64_MAX;
    supervisor->link.lagged_from = UINT64_MAX;
    return supervisor;
}

void supervisor_destroy(struct supervisor *supervisor)
{
    if (!supervisor)
        return;
    for (size_t i = 0; i < supervisor->rank_count; i++)
        rank_finish(&supervisor->ranks[i]);
    free(supervisor->ranks);
    free(supervisor->node);
    free(supervisor);
}

struct supervisor_action *act(struct supervisor_actions *actions, enum supervisor_action_kind kind)
{
    actions->items =
        grow(actions->items, actions->count, &actions->capacity, sizeof *actions->items);
    struct supervisor_action *action = &actions->items[actions->count++];
    *action = (struct supervisor_action){.kind = kind};
    return action;
}

void act_on_rank(struct supervisor_actions *actions, enum supervisor_action_kind kind,
                 const struct rank *rank)
{
    act(actions, kind)->rank = rank->id;
}

void act_log(struct supervisor_actions *actions, enum log_level level, const char *format, ...)
{
    struct supervisor_action *action = act(actions, SUPERVISOR_LOG);
    action->level = level;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(action->text, sizeof action->text, format, arguments);
    va_end(arguments);
}

char *supervisor_describe(const struct supervisor *supervisor, char *out, size_t size)
{
    const struct link *link = &supervisor->link;
    size_t running = 0;
    for (size_t i = 0; i < supervisor->rank_count; i++)
        running += rank_has_executor(&supervisor->ranks[i]);
    const char *state = supervisor->leaving       ? "leaving"
                        : link->state == LINK_UP  ? "registered"
                        : link->complaint[0] != 0 ? link->complaint
                                                  : "looking for the coordinator";
    snprintf(out, size, "node '%s', executors: %zu; %s", supervisor->node, running, state);
    return out;
}

void supervisor_actions_clear(struct supervisor_actions *actions)
{
    actions->count = 0;
}

void supervisor_actions_finish(struct supervisor_actions *actions)
{
    free(actions->items);
    *actions = (struct supervisor_actions){0};
}

void supervisor_start(struct supervisor *supervisor, struct supervisor_actions *actions)
{
    assert(supervisor->link.state == LINK_IDLE); /* called once */
    link_begin(supervisor, actions);
}

void supervisor_settle(struct supervisor *supervisor, uint64_t now_ms,
                       struct supervisor_actions *actions)
{
    if (!supervisor->leaving || supervisor->quit || !ranks_all_gone(supervisor))
        return;
    if (supervisor->farewell_ms == UINT64_MAX)
        supervisor->farewell_ms = now_ms + SUPERVISOR_FAREWELL_MS;
    bool reported = ranks_all_reported(supervisor);
    if (!reported && now_ms < supervisor->farewell_ms)
        return;
    if (!reported)
        act_log(actions, LOG_WARN,
                "the coordinator is not in reach: it will find out by itself what was stopped");
    act(actions, SUPERVISOR_QUIT)->status = supervisor->status;
    supervisor->quit = true;
}

void supervisor_leave(struct supervisor *supervisor, int status, const char *reason,
                      uint64_t now_ms, struct supervisor_actions *actions)
{
    if (supervisor->leaving)
        return;
    supervisor->leaving = true;
    supervisor->status = status;
    ranks_stop_all(supervisor, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, reason, now_ms, actions);
    ranks_deliver(supervisor, actions);
    supervisor_settle(supervisor, now_ms, actions);
}

void supervisor_terminate(struct supervisor *supervisor, uint64_t now_ms,
                          struct supervisor_actions *actions)
{
    if (supervisor->leaving)
        return;
    char reason[128];
    snprintf(reason, sizeof reason, "node '%s' is being stopped", supervisor->node);
    act_log(actions, LOG_INFO, "asked to stop: stopping all executors");
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->link.state == LINK_UP)
            rank_stop_saving(&supervisor->ranks[i], GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED,
                             reason, now_ms, actions);
        else
            rank_stop(&supervisor->ranks[i], GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, reason,
                      now_ms, actions);
    supervisor_leave(supervisor, 0, reason, now_ms, actions);
}

void supervisor_expire(struct supervisor *supervisor, uint64_t now_ms,
                       struct supervisor_actions *actions)
{
    if (supervisor->quit)
        return;
    link_expire(supervisor, now_ms, actions);
    ranks_expire(supervisor, now_ms, actions);
    supervisor_settle(supervisor, now_ms, actions);
}

uint64_t supervisor_next_ms(const struct supervisor *supervisor)
{
    if (supervisor->quit)
        return UINT64_MAX;
    uint64_t link = link_next_ms(supervisor), ranks = ranks_next_ms(supervisor);
    uint64_t next = link < ranks ? link : ranks;
    return supervisor->farewell_ms < next ? supervisor->farewell_ms : next;
}

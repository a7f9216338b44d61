/* children.c - the worker's side of simulated executors: worker/node/child.h and the reading
 * half of common/message/channel.h, and the table of those that there are. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/memory.h"
#include "common/message/message.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/cluster.h"

/* Descriptors that are none: of executor n they are FDS * n, and the same plus CHANNEL_FD. */
enum { CHANNEL_FD = 1, FDS };

static struct executor **executors; /* by number; NULL: gone */
static size_t count, capacity;

void executors_open(void)
{
    count = 0;
}

static void drop(struct executor *executor)
{
    crew_leave(executor);
    world_cancel(executor->next);
    for (size_t i = 0; i < executor->event_count; i++)
        message_free(executor->events[i]);
    free(executor->events);
    trail_close(executor->trail);
    if (executor->state_fd >= 0)
        close(executor->state_fd);
    executor_drop_held(executor);
    executors[executor->id - 1] = NULL;
    free(executor);
}

void executors_close(void)
{
    for (size_t i = 0; i < count; i++)
        if (executors[i])
            drop(executors[i]);
    free(executors);
    crews_close();
    executors = NULL;
    count = capacity = 0;
}

size_t executors_count(void)
{
    return count;
}

struct executor *executor_at(size_t index)
{
    return executors[index];
}

static struct executor *find(int id)
{
    return id > 0 && (size_t)id <= count ? executors[id - 1] : NULL;
}

struct executor *executor_numbered(int id)
{
    return find(id);
}

int child_start(const struct child_options *options, struct child *out, struct error *err)
{
    struct sim_node *node = (struct sim_node *)world->current;
    if (!actor_effect(&node->actor))
        return error_set(err, -EAGAIN, "its node is gone");
    struct executor *executor = xcalloc(1, sizeof *executor);
    executors = grow(executors, count, &capacity, sizeof(struct executor *));
    executors[count++] = executor;
    executor->id = (int)count;
    executor->node = node;
    executor->state_fd = options->state_fd < 0 ? -1 : fcntl(options->state_fd, F_DUPFD_CLOEXEC, 0);
    int trail;
    if (trail_create(&executor->trail, &trail, err) < 0)
        world_fail("%s", err->text);
    close(trail);
    *out = (struct child){.pid = executor->id,
                          .pid_fd = FDS * executor->id,
                          .output_fd = -1,
                          .trail = executor->trail};
    out->channel.fd = FDS * executor->id + CHANNEL_FD;
    world->tally.executors++;
    return 0;
}

int child_send(struct child *child, const ProtobufCMessage *message, struct error *err)
{
    struct executor *executor = find(child->pid);
    if (!executor || executor->ended)
        return error_set(err, -EPIPE, "it is gone");
    if (!actor_effect(&executor->node->actor))
        return 0;
    executor_take(executor, (const Gimbal__ExecutorCommand *)message);
    return 0;
}

/* Here it is known whom the kernel has killed for memory. */
void child_renew(struct child *child)
{
    (void)child;
}

void child_signal(struct child *child, int number)
{
    struct executor *executor = find(child->pid);
    if (!executor || executor->ended || !actor_effect(&executor->node->actor))
        return;
    child->killed = child->killed || number == SIGKILL;
    if (!executor->told)
        check_executor_stop(executor);
    if (number == SIGKILL)
        executor_end(executor, 0, SIGKILL);
    else
        executor_terminate(executor);
}

/* worker/node/child.h: nobody wants for a processor here. */
void child_look(struct child_look *look, pid_t pid, uint64_t now_ms)
{
    const struct executor *executor = find(pid);
    *look = (struct child_look){.at_ms = now_ms, .stopped = executor && executor->stopped};
}

void child_read_output(struct child *child, lines_cb callback, void *data)
{
    (void)child, (void)callback, (void)data;
}

struct child_end child_kill(struct child *child)
{
    struct executor *executor = find(child->pid);
    struct child_end end = {.how = "is gone"};
    if (!executor)
        return end;
    end.struck = executor->signal && executor->signal != SIGTERM && !child->killed;
    end.for_memory = executor->starved;
    if (executor->signal)
        snprintf(end.how, sizeof end.how, "was killed by signal %d", executor->signal);
    else
        snprintf(end.how, sizeof end.how, "left with exit status %d", executor->status);
    if (!executor->ended)
        executor_fail_peers(executor);
    drop(executor);
    return end;
}

int channel_read(struct channel *channel, const ProtobufCMessageDescriptor *type, int timeout_ms,
                 ProtobufCMessage **out, struct error *err)
{
    (void)type, (void)timeout_ms;
    struct executor *executor = find(channel->fd / FDS);
    if (!executor || (executor->event_count == 0 && executor->ended))
        return error_set(err, -EPIPE, "it is gone");
    if (executor->event_count == 0)
        return 0;
    *out = executor->events[0];
    memmove(executor->events, executor->events + 1,
            --executor->event_count * sizeof *executor->events);
    return 1;
}

bool executor_says(int fd)
{
    const struct executor *executor = find(fd / FDS);
    if (fd < FDS)
        return false;
    return !executor || executor->ended || (fd % FDS == CHANNEL_FD && executor->event_count > 0);
}

void executors_kill_node(const char *node)
{
    for (size_t i = 0; i < count; i++) {
        struct executor *executor = executors[i];
        if (!executor || strcmp(executor->node->name, node) != 0)
            continue;
        if (!executor->ended)
            executor_fail_peers(executor);
        drop(executor);
    }
}

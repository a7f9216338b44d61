/* world.c - virtual time: events in their order, draws from the seed, and whose turn it is; and the
 * clock, random numbers and the log of all that runs in it.
 *
 * Defines what common/base/clock.h and common/base/log.h declare, and getrandom(2), poll(2) and
 * eventfd's reading and writing: nobody waits here, and whose turn it is the world knows. An error
 * in the log is one that no fault of the world explains, unless it is known to be explained. */
#include "tests/simulation/world.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/simulation/matrix.h"

#define TURNS_MOST 1000

struct event {
    uint64_t at_ms, number; /* of two at the same time the older comes first */
    event_cb callback;
    void *data;
    size_t place; /* in the heap */
    struct event *next_free;
};

struct world *world;
static struct event *free_events;

static bool comes_before(const struct event *a, const struct event *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->number < b->number;
}

static void put_at(size_t place, struct event *event)
{
    world->heap[place] = event;
    event->place = place;
}

static void sift_up(size_t place, struct event *event)
{
    for (size_t above; place > 0; place = above) {
        above = (place - 1) / 2;
        if (!comes_before(event, world->heap[above]))
            break;
        put_at(place, world->heap[above]);
    }
    put_at(place, event);
}

static void sift_down(size_t place, struct event *event)
{
    for (size_t child; (child = 2 * place + 1) < world->heap_count; place = child) {
        if (child + 1 < world->heap_count &&
            comes_before(world->heap[child + 1], world->heap[child]))
            child++;
        if (!comes_before(world->heap[child], event))
            break;
        put_at(place, world->heap[child]);
    }
    put_at(place, event);
}

struct event *world_after(uint64_t delay_ms, event_cb callback, void *data)
{
    struct event *event = free_events;
    if (event)
        free_events = event->next_free;
    else
        event = xcalloc(1, sizeof *event);
    *event =
        (struct event){world_now_ms() + delay_ms, world->next_event++, callback, data, 0, NULL};
    world->heap = grow(world->heap, world->heap_count, &world->heap_capacity, sizeof event);
    sift_up(world->heap_count++, event);
    return event;
}

/* Out of the heap, to be used again. */
static void take_out(struct event *event)
{
    struct event *last = world->heap[--world->heap_count];
    size_t place = event->place;
    event->next_free = free_events;
    free_events = event;
    if (last == event)
        return;
    if (place > 0 && comes_before(last, world->heap[(place - 1) / 2]))
        sift_up(place, last);
    else
        sift_down(place, last);
}

void world_cancel(struct event *event)
{
    if (event)
        take_out(event);
}

bool world_step(uint64_t until_ms)
{
    if (world->heap_count == 0 || world->heap[0]->at_ms > until_ms)
        return false;
    struct event event = *world->heap[0];
    if (event.at_ms > world->now_ms)
        world->now_ms = event.at_ms;
    take_out(world->heap[0]);
    world->tally.events++;
    event.callback(event.data);
    return true;
}

void world_drop_events(void)
{
    while (world->heap_count > 0)
        take_out(world->heap[0]);
    free(world->heap);
    while (free_events) {
        struct event *event = free_events;
        free_events = event->next_free;
        free(event);
    }
}

uint64_t world_now_ms(void)
{
    return world->now_ms + world->busy_ms;
}

uint64_t world_draw(uint64_t bound)
{
    return random_below(world->options.seed, 0, world->draws++, bound);
}

uint64_t world_between(uint64_t least, uint64_t most)
{
    return least + world_draw(most - least + 1);
}

bool world_chance(unsigned per_mille)
{
    return per_mille > 0 && world_draw(1000) < per_mille;
}

void world_fail(const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "seed %" PRIu64 "%s, %" PRIu64 ".%03" PRIu64 " s, event %" PRIu64 ": ",
            world->options.seed, world->options.big ? " (big)" : "", world->now_ms / 1000,
            world->now_ms % 1000, world->tally.events);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nagain: simulate %s--trace ", world->options.big ? "--big " : "");
    if (world->options.cell)
        fprintf(stderr, "--cell %s %s ", matrix_row_name(world->options.row),
                phase_name((enum phase)world->options.column));
    fprintf(stderr, "%" PRIu64 " 1\n", world->options.seed);
    exit(EXIT_FAILURE);
}

void world_trace(const char *format, ...)
{
    if (!world->options.trace)
        return;
    va_list arguments;
    printf("%4" PRIu64 ".%03" PRIu64 " %-12s ", world_now_ms() / 1000, world_now_ms() % 1000,
           world->current ? world->current->name : "-");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

struct actor *actor_enter(struct actor *actor)
{
    struct actor *before = world->current;
    world->current = actor;
    return before;
}

void actor_leave(struct actor *before)
{
    world->current = before;
    world->busy_ms = 0;
}

/* Whoever is due again as soon as it has had its turn keeps a core busy, and time from passing. */
static void check_spin(struct actor *actor)
{
    actor->turns = actor->turn_ms == world->now_ms ? actor->turns + 1 : 0;
    actor->turn_ms = world->now_ms;
    if (actor->turns > TURNS_MOST)
        world_fail("%s spins: it had %d turns within a millisecond", actor->name, TURNS_MOST);
}

static void poll_now(void *data)
{
    struct actor *actor = data;
    actor->poll = NULL;
    if (actor->doomed)
        return;
    if (actor->busy_until_ms > world->now_ms) {
        actor->poll = world_after(actor->busy_until_ms - world->now_ms, poll_now, actor);
        return;
    }
    check_spin(actor);
    struct actor *before = actor_enter(actor);
    actor->poll_cb(actor);
    actor->busy_until_ms = world_now_ms();
    actor_leave(before);
}

void actor_wake(struct actor *actor)
{
    if (!actor->poll && !actor->doomed)
        actor->poll = world_after(0, poll_now, actor);
}

static void timer_rings(void *data)
{
    struct actor *actor = data;
    actor->timer = NULL;
    actor_wake(actor);
}

void actor_wake_at(struct actor *actor, uint64_t at_ms)
{
    if (actor->timer && actor->timer_ms == at_ms)
        return;
    world_cancel(actor->timer);
    actor->timer = NULL;
    if (at_ms == UINT64_MAX || actor->doomed)
        return;
    actor->timer_ms = at_ms;
    actor->timer =
        world_after(at_ms > world_now_ms() ? at_ms - world_now_ms() : 0, timer_rings, actor);
}

void actor_forget(struct actor *actor)
{
    world_cancel(actor->poll);
    world_cancel(actor->timer);
    actor->poll = actor->timer = NULL;
}

static void die(void *data)
{
    struct actor *actor = data;
    actor->die_cb(actor);
}

void actor_doom(struct actor *actor)
{
    if (actor->doomed)
        return;
    actor->doomed = true;
    actor->effects_left = 0;
    actor_forget(actor);
    world_after(0, die, actor);
}

bool actor_effect(struct actor *actor)
{
    if (actor->effects_left > 0 && --actor->effects_left == 0) {
        world_trace("dies");
        actor_doom(actor);
    }
    return !actor->doomed;
}

/* ---- what common and the system declare ---- */

uint64_t clock_ms(void)
{
    return world_now_ms();
}

double clock_s(void)
{
    return (double)world_now_ms() / 1e3;
}

uint64_t clock_ns(void)
{
    return world_now_ms() * 1000000;
}

uint64_t clock_unix_ms(void)
{
    return world_now_ms();
}

/* Numbers that the programs draw for themselves: clients and instances. */
ssize_t getrandom(void *buffer, size_t size, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)buffer)[i] = (unsigned char)world_draw(256);
    return (ssize_t)size;
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    (void)fds, (void)count, (void)timeout_ms;
    return 0;
}

int eventfd_read(int fd, eventfd_t *value)
{
    (void)fd, (void)value;
    return 0;
}

int eventfd_write(int fd, eventfd_t value)
{
    (void)fd, (void)value;
    return 0;
}

const char *const log_level_names[] = {"debug", "info", "warn", "error", NULL};

void log_open(const char *module, enum log_level least)
{
    (void)module, (void)least;
}

/* What ranks end with is the worker's to report, and the disk may fail here. */
static bool is_explained(const char *text)
{
    return strncmp(text, "job ", 4) == 0 || strstr(text, "the store has failed");
}

void log_line(enum log_level level, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    if (level < LOG_ERROR && !world->options.trace)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    world_trace("%s: %s", log_level_names[level], text);
    if (level >= LOG_ERROR && !is_explained(text))
        world_fail("%s logs an error: %s", world->current ? world->current->name : "-", text);
}

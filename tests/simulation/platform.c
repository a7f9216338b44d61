/* platform.c - the clock, random numbers and the log of all that runs in the simulated world.
 *
 * Defines what common/rpc/clock.h and common/base/log.h declare, and getrandom(2), poll(2)
 * and eventfd's reading and writing: nobody waits here, and whose turn it is the world knows. An
 * error in the log is one that no fault of the world explains, unless it is known to be explained.
 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include "common/base/log.h"
#include "common/base/random.h"
#include "common/rpc/clock.h"
#include "tests/simulation/world.h"

uint64_t rpc_clock_ms(void)
{
    return world_now_ms();
}

uint32_t rpc_clock_left_ms(uint64_t then_ms, uint64_t now_ms)
{
    if (then_ms <= now_ms)
        return 0;
    return then_ms - now_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)(then_ms - now_ms);
}

uint64_t rpc_clock_ns(void)
{
    return world_now_ms() * 1000000;
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
    static const char *const names[] = {"debug", "info", "warn", "error"};
    char text[2048];
    va_list arguments;
    if (level < LOG_ERROR && !world->options.trace)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    world_trace("%s: %s", names[level], text);
    if (level >= LOG_ERROR && !is_explained(text))
        world_fail("%s logs an error: %s", world->current ? world->current->name : "-", text);
}

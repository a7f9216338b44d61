/* rpc.h - what the figures of this suite share: samples, output lines, and helper processes.
 *
 * A process that uses NNG must not fork. So every figure runs in a process of its own, and starts
 * the processes that it calls before anything else. */
#ifndef BENCH_RPC_RPC_H
#define BENCH_RPC_RPC_H

#include "common/rpc/client.h"
#include "common/rpc/coordinator_service.h"
#include "common/rpc/server.h"

#include <stddef.h>
#include <sys/types.h>

/* The figures. Each prints its lines and returns an exit status. `seconds` is the duration of
 * figure_fleet; the others ignore it. */
int figure_unary(unsigned seconds);
int figure_flight(unsigned seconds);
int figure_stream(unsigned seconds);
int figure_held(unsigned seconds);
int figure_fleet(unsigned seconds);

double now_s(void);

/* Measured values; zeroed at first. */
struct samples {
    double *values;
    size_t count, capacity;
};
void samples_add(struct samples *samples, double value);
/* The quantile of this share, 0 to 1; NAN without values. Sorts them. */
double samples_quantile(struct samples *samples, double share);
void samples_finish(struct samples *samples);

/* "bench rpc/NAME VALUE UNIT  # WORDS" */
void print_figure(const char *name, double value, const char *unit, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Print the reason to stderr; returns the exit status for a failure. */
int fail(const char *text);

/* Start a process that runs `body`. It writes what this process must know to fd and closes fd; up
 * to size - 1 bytes of that go to `told`. The process is killed with this one. On failure this
 * process ends. */
void part_start(int (*body)(int fd, const char *argument), const char *argument, char *told,
                size_t size);

/* A server on free ports that answers Hello and Heartbeat. Its address is written to fd, which is
 * then closed. NULL on failure. */
struct rpc_server *bench_server(int fd);
/* A client that has said Hello; NULL on failure. */
struct rpc_client *bench_client(const char *address);
/* Send a heartbeat with one rank. Returns the seconds it took, or -1 with a message on stderr. */
double time_heartbeat(struct rpc_client *client);
/* Handler of Heartbeat; its reply has the number of parked calls as revision. */
void answer_heartbeat(struct rpc_call *call, void *server);

#endif

/* rpc.h - what the figures of this suite share: times, lines, and processes of their own.
 *
 * NNG cannot be forked once it is in use: so every figure runs in a process of its own, and
 * starts the processes that it calls before anything else. */
#ifndef BENCH_RPC_RPC_H
#define BENCH_RPC_RPC_H

#include "common/rpc/client.h"
#include "common/rpc/server.h"
#include "common/rpc/services/coordinator.h"

#include <stddef.h>
#include <sys/types.h>

/* Figures; each prints its lines and returns an exit status. seconds is how long the one figure
 * that takes a time takes; the others take none. */
int figure_unary(unsigned seconds);
int figure_flight(unsigned seconds);
int figure_stream(unsigned seconds);
int figure_held(unsigned seconds);
int figure_fleet(unsigned seconds);

double now_s(void);

/* Measured values; zeroed to begin with. */
struct samples {
    double *values;
    size_t count, capacity;
};
void samples_add(struct samples *samples, double value);
/* The value that a share of all does not exceed; sorts them. */
double samples_quantile(struct samples *samples, double share);
void samples_finish(struct samples *samples);

/* "bench rpc/NAME VALUE UNIT  # WORDS" */
void print_figure(const char *name, double value, const char *unit, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Says why on stderr; the exit status. */
int fail(const char *text);

/* Start a process that runs body, which writes what this process has to know, at most size - 1
 * bytes, to fd and closes it; it is killed with this one. Ends the figure when it cannot. */
void part_start(int (*body)(int fd, const char *argument), const char *argument, char *told,
                size_t size);

/* A server on free ports that answers Hello and Heartbeat; its address is told to fd, which is
 * then closed. NULL when it cannot. */
struct rpc_server *bench_server(int fd);
/* A client that has said Hello; NULL when it cannot. */
struct rpc_client *bench_client(const char *address);
/* A heartbeat with one rank; how long it took, or -1 with words on stderr. */
double time_heartbeat(struct rpc_client *client);
/* Answers with the count of parked calls as its revision. */
void answer_heartbeat(struct rpc_call *call, void *server);

#endif

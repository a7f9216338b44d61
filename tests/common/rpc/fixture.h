/* fixture.h - a server and a client over real loopback sockets, pumped by one thread.
 *
 * Nothing here sleeps: pumping waits until a socket has something to do, and fails the test
 * when for ten seconds none has, or when what it waits for is lost. */
#ifndef TESTS_COMMON_RPC_FIXTURE_H
#define TESTS_COMMON_RPC_FIXTURE_H

#include "common/rpc/client.h"
#include "common/rpc/coordinator_service.h"
#include "common/rpc/server.h"
#include "tests/support/suite.h"

#include <stdbool.h>

#define TERM 7
#define INSTANCE 0x1234
#define UNIX_MS 1700000000123u

struct house {
    struct rpc_server *server;
    struct rpc_client *clients[4];
    size_t client_count;
    char address[96];
};

/* How a call ended. */
struct outcome {
    bool done;
    enum rpc_status status;
    char text[ERROR_SIZE];
    ProtobufCMessage *reply; /* yours, by message_free */
};

/* What a test server is by default; to be changed and given to house_open. */
struct rpc_server_options house_options(void);
/* A server on free ports, for everybody, answering Hello. options may be NULL. */
void house_open(struct house *house, const struct rpc_server_options *options);
/* Stop the server, keep its clients; and one more at the same address. */
void house_stop(struct house *house);
void house_restart(struct house *house, const struct rpc_server_options *options);
/* One more client, that has not said Hello; or that has. */
struct rpc_client *house_stranger(struct house *house);
struct rpc_client *house_client(struct house *house);
void house_close_client(struct house *house, struct rpc_client *client);
void house_close(struct house *house);

/* Wait until something can be done, and do it. */
void house_pump_once(struct house *house);
/* Run server and clients until *flag or, for a count, until *count is at least that. */
void house_pump(struct house *house, const bool *flag);
void house_pump_count(struct house *house, const size_t *count, size_t least);
/* Until so many calls are parked. */
void house_pump_held(struct house *house, size_t count);

/* Start a call that fills outcome; and wait for it. NULL options: ten seconds. */
struct rpc_pending *house_start(struct rpc_client *client, unsigned method, const void *request,
                                const struct rpc_call_options *options, struct outcome *outcome);
void house_call(struct house *house, struct rpc_client *client, unsigned method,
                const void *request, struct outcome *outcome);
/* Free the reply, and be ready for another call. */
void outcome_clear(struct outcome *outcome);

/* A clock that the test sets. */
extern _Atomic uint64_t house_now_ms;
uint64_t house_clock(void);

/* What is allocated in this process, to find frames that nobody frees; under a sanitizer, which
 * allocates itself, always 0. */
size_t house_memory_bytes(void);

/* A suite of one case, run; the program's exit status. */
int house_run(const char *name, const TTest *const *tests, size_t count);

#endif

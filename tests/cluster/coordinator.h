/* coordinator.h - a coordinator for tests of gimbal-worker: answers every call and remembers it.
 *
 * It is pumped by the test's thread, while gimbal-worker is a real process. */
#ifndef TESTS_CLUSTER_COORDINATOR_H
#define TESTS_CLUSTER_COORDINATOR_H

#include "common/rpc/records.h"
#include "common/rpc/server.h"
#include "proto/coordinator.pb-c.h"
#include "tests/support/suite.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define KEPT 64
#define COORDINATOR_HEARTBEAT_MS 100

struct coordinator {
    struct rpc_server *server;
    struct stream *assignments;
    char address[96];
    uint64_t term;

    /* What has come; the messages are copies, freed by coordinator_close. */
    size_t hellos, reports, heartbeats;
    Gimbal__HardwareReport *report;
    Gimbal__HeartbeatRequest *heartbeat;
    Gimbal__ReadyRequest *ready[KEPT];
    size_t ready_count;
    Gimbal__StoppedRequest *stopped[KEPT];
    size_t stopped_count;
    Gimbal__TelemetryRecord *telemetry[KEPT]; /* the first ones */
    size_t telemetry_count;
    uint64_t pushing, acknowledged; /* who pushed last, and how far */

    bool refuse_ready;    /* answer Ready with FAILED_PRECONDITION */
    uint64_t client;      /* the worker's instance that called last */
    uint64_t lost_client; /* its reports and heartbeats are refused */
    char put_keys[256];   /* all keys that were put, each between blanks */
    size_t gets;          /* calls that wanted a value */
    uint64_t last_get;    /* the number of the last of them */
    char value[64];       /* of the key "other"; "" while nobody has put it */
};

void coordinator_open(struct coordinator *coordinator);
/* Stop serving; and again at the same address, with a new term and nothing assigned. */
void coordinator_stop(struct coordinator *coordinator);
void coordinator_restart(struct coordinator *coordinator);
void coordinator_close(struct coordinator *coordinator);

/* Serve until the condition holds; fails the test after ten seconds, stretched. */
#define PUMP(coordinator, condition)                                                               \
    do {                                                                                           \
        uint64_t until_ms_ = clock_ms() + (uint64_t)test_patience_ms(10000);                       \
        while (!(condition)) {                                                                     \
            ck_assert_msg(clock_ms() < until_ms_, "for too long not: %s", #condition);             \
            coordinator_pump(coordinator);                                                         \
        }                                                                                          \
    } while (0)
/* Wait for calls, but not long: the condition may depend on something else. */
void coordinator_pump(struct coordinator *coordinator);

/* Append to the node's assignments. */
void coordinator_assign(struct coordinator *coordinator, const char *job, uint64_t epoch,
                        uint32_t rank, uint32_t device, const char *text);
void coordinator_go(struct coordinator *coordinator, const char *job, uint64_t epoch);
void coordinator_cancel(struct coordinator *coordinator, const char *job, uint64_t epoch);
/* The value that ranks get under "other". */
void coordinator_put(struct coordinator *coordinator, const char *value);

/* Whether a line with these words came. */
bool coordinator_logged(const struct coordinator *coordinator, const char *words);
/* The highest step that telemetry told of. */
uint64_t coordinator_step(const struct coordinator *coordinator);

#endif

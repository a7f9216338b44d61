/* real_cluster.h - a real coordinator on free ports, and workers that are clients of the test.
 *
 * Nothing here sleeps: waiting is for a file to appear, a call to end or a record to come, and
 * fails the test when for ten seconds none does. */
#ifndef TESTS_CLUSTER_REAL_CLUSTER_H
#define TESTS_CLUSTER_REAL_CLUSTER_H

#include "common/hardware/hardware.h"
#include "common/rpc/client.h"
#include "common/rpc/coordinator_service.h"
#include "common/rpc/streams.h"

#include <stdbool.h>
#include <sys/types.h>

#define PARTIES_MAX 8
#define RECORDS_MAX 64

/* A client of the coordinator, and what its stream has brought. */
struct party {
    struct rpc_client *client;
    struct rpc_watch *watch;
    const ProtobufCMessageDescriptor *type;
    ProtobufCMessage *records[RECORDS_MAX];
    size_t count, seen;     /* seen: where the next wait goes on */
    enum rpc_status status; /* of its stream: RPC_OK while it goes on */
    const char *name;
};

struct cluster {
    pid_t coordinator;
    char directory[64];
    char address[96];
    struct party parties[PARTIES_MAX];
    size_t party_count;
};

/* A coordinator; further arguments, NULL-ended, or NULL. */
void cluster_start(struct cluster *cluster, const char *const *arguments);
/* Ends the coordinator by SIGTERM, which it must obey with 0. */
void cluster_stop(struct cluster *cluster);
/* Ends it by SIGKILL; the next one, at the same address, begins with its store. */
void cluster_kill(struct cluster *cluster);
void cluster_restart(struct cluster *cluster, const char *const *arguments);
/* The same where it may die before it listens: then false, and it is to be collected by
 * cluster_kill(). */
bool cluster_try_restart(struct cluster *cluster, const char *const *arguments);
/* Run the coordinator with these arguments, NULL-ended, until it ends of its own: exit code, and
 * what it wrote to stderr. */
int coordinator_run(const char *const *arguments, char *words, size_t size);

/* A user, who follows the events. */
struct party *cluster_user(struct cluster *cluster);
/* A registered worker with so many CPU devices of so much memory, that follows its assignments. */
struct party *cluster_worker(struct cluster *cluster, const char *name, unsigned devices,
                             uint64_t memory_bytes);
/* The same with `count` devices like this one. */
struct party *cluster_worker_of(struct cluster *cluster, const char *name,
                                const struct hardware_device *device, unsigned count);
/* The same that reports just this; its name is lent. */
struct party *cluster_worker_with(struct cluster *cluster, const struct hardware_report *report);
/* Its connections close, as when it is killed. */
void party_leave(struct cluster *cluster, struct party *party);

/* Call and wait. The reply, or NULL where status and words say why not; yours, by message_free. */
void *party_ask(struct party *party, unsigned method, const void *request, enum rpc_status *status,
                struct error *words);
/* The same for a call that has to go well, or whose reply nobody wants. */
void *party_call(struct party *party, unsigned method, const void *request);
void party_tell(struct party *party, unsigned method, const void *request);

/* Wait until a call that was started has ended. */
void cluster_pump(struct cluster *cluster, const bool *flag);
/* The next record of the worker; it must be of this case. */
const Gimbal__WorkerRecord *cluster_record(struct cluster *cluster, struct party *worker,
                                           Gimbal__WorkerRecord__RecordCase wanted);
/* The next event of this kind, others before it are passed over; or of any, NULL. */
const Gimbal__Event *cluster_event(struct cluster *cluster, struct party *user, const char *kind);

#endif

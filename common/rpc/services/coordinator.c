/* coordinator.c - the table of the Coordinator's methods: who may call them, and how large their
 * requests may be. */
#include "common/rpc/services/coordinator.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Most requests are a line of text; a job with its plan or a batch of telemetry is larger. */
static const struct rpc_method methods[COORDINATOR_METHOD_COUNT] = {
    [COORDINATOR_HELLO] = {"Hello", RPC_UNARY, RPC_EVERYBODY, true, true, 4 * KIB,
                           .to_strangers = true},

    [COORDINATOR_REPORT_HARDWARE] = {"ReportHardware", RPC_UNARY, RPC_WORKER, true, false, MIB},
    [COORDINATOR_HEARTBEAT] = {"Heartbeat", RPC_UNARY, RPC_WORKER, true, false, 64 * KIB},
    [COORDINATOR_WATCH_ASSIGNMENTS] = {"WatchAssignments", RPC_HELD, RPC_WORKER, true, false,
                                       4 * KIB},
    [COORDINATOR_RENDEZVOUS] = {"Rendezvous", RPC_HELD, RPC_WORKER, true, false, 64 * KIB},
    [COORDINATOR_READY] = {"Ready", RPC_UNARY, RPC_WORKER, true, false, 2 * MIB},
    [COORDINATOR_PAUSED] = {"Paused", RPC_UNARY, RPC_WORKER, true, false, 4 * KIB},
    [COORDINATOR_STAGED] = {"Staged", RPC_UNARY, RPC_WORKER, true, false, 4 * KIB},
    [COORDINATOR_STOPPED] = {"Stopped", RPC_UNARY, RPC_WORKER, true, false, 64 * KIB},
    [COORDINATOR_PUSH_TELEMETRY] = {"PushTelemetry", RPC_CLIENT_STREAM, RPC_WORKER, true, false,
                                    MIB},

    [COORDINATOR_SUBMIT] = {"Submit", RPC_UNARY, RPC_USER, false, false, 4 * MIB},
    [COORDINATOR_CANCEL] = {"Cancel", RPC_UNARY, RPC_USER, true, false, 4 * KIB},
    [COORDINATOR_PAUSE] = {"Pause", RPC_UNARY, RPC_USER, true, false, 4 * KIB},
    [COORDINATOR_RESUME] = {"Resume", RPC_UNARY, RPC_USER, true, false, 4 * KIB},
    [COORDINATOR_REPLAN] = {"Replan", RPC_UNARY, RPC_USER, true, false, 4 * KIB},
    [COORDINATOR_GET_JOB] = {"GetJob", RPC_UNARY, RPC_USER, true, false, 4 * KIB},
    [COORDINATOR_LIST_JOBS] = {"ListJobs", RPC_UNARY, RPC_USER, true, false, 4 * KIB},
    [COORDINATOR_LIST_NODES] = {"ListNodes", RPC_UNARY, RPC_USER, true, false, 4 * KIB},
    [COORDINATOR_PLAN] = {"Plan", RPC_UNARY, RPC_USER, true, false, 4 * MIB},
    [COORDINATOR_GET_LOGS] = {"GetLogs", RPC_UNARY, RPC_USER, true, false, 4 * KIB},
    [COORDINATOR_GET_TRACE] = {"GetTrace", RPC_UNARY, RPC_USER, true, false, 4 * KIB},
    [COORDINATOR_WATCH_EVENTS] = {"WatchEvents", RPC_HELD, RPC_USER, true, false, 4 * KIB},
    [COORDINATOR_LIST_EVENTS] = {"ListEvents", RPC_UNARY, RPC_USER, true, false, 4 * KIB},

    [COORDINATOR_DRAIN] = {"Drain", RPC_UNARY, RPC_ADMIN, true, false, 4 * KIB},
    [COORDINATOR_DRILL] = {"Drill", RPC_UNARY, RPC_ADMIN, false, false, 4 * KIB},
    [COORDINATOR_ISSUE_TOKEN] = {"IssueToken", RPC_UNARY, RPC_ADMIN, false, false, 4 * KIB},
    [COORDINATOR_REVOKE] = {"Revoke", RPC_UNARY, RPC_ADMIN, true, false, 4 * KIB},
    [COORDINATOR_LIST_CREDENTIALS] = {"ListCredentials", RPC_UNARY, RPC_ADMIN, true, false,
                                      4 * KIB},
    [COORDINATOR_BACKUP] = {"Backup", RPC_UNARY, RPC_ADMIN, true, false, 4 * KIB},

    [COORDINATOR_JOIN] = {"Join", RPC_UNARY, RPC_WORKER | RPC_USER, false, false, 4 * KIB,
                          .to_strangers = true},
};

const struct rpc_service service_coordinator = {&gimbal__coordinator__descriptor, methods};

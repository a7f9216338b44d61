/* coordinator_service.c - the table of the Coordinator's methods: what they are asked for, who may
 * call them, and how large their requests may be. */
#include "common/rpc/coordinator_service.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Most requests are a line of text; a job with its plan or a batch of telemetry is larger. */
static const struct rpc_method methods[COORDINATOR_METHOD_COUNT] = {
    [COORDINATOR_HELLO] = {"Hello", "to open a session", RPC_UNARY, RPC_EVERYBODY, true, true,
                           4 * KIB, .to_strangers = true},

    [COORDINATOR_REPORT_HARDWARE] = {"ReportHardware", "to register the worker", RPC_UNARY,
                                     RPC_WORKER, true, false, MIB},
    [COORDINATOR_HEARTBEAT] = {"Heartbeat", "to note that the worker lives", RPC_UNARY, RPC_WORKER,
                               true, false, 64 * KIB},
    [COORDINATOR_WATCH_ASSIGNMENTS] = {"WatchAssignments", "to follow assignments", RPC_HELD,
                                       RPC_WORKER, true, false, 4 * KIB},
    [COORDINATOR_RENDEZVOUS] = {"Rendezvous", "to let ranks meet", RPC_HELD, RPC_WORKER, true,
                                false, 64 * KIB},
    [COORDINATOR_READY] = {"Ready", "to note a rank that is ready", RPC_UNARY, RPC_WORKER, true,
                           false, 2 * MIB},
    [COORDINATOR_PAUSED] = {"Paused", "to note a rank that has paused", RPC_UNARY, RPC_WORKER, true,
                            false, 4 * KIB},
    [COORDINATOR_STAGED] = {"Staged", "to list a checkpoint", RPC_UNARY, RPC_WORKER, true, false,
                            4 * KIB},
    [COORDINATOR_STOPPED] = {"Stopped", "to note a rank that has stopped", RPC_UNARY, RPC_WORKER,
                             true, false, 64 * KIB},
    [COORDINATOR_PUSH_TELEMETRY] = {"PushTelemetry", "to take telemetry", RPC_CLIENT_STREAM,
                                    RPC_WORKER, true, false, MIB},

    [COORDINATOR_SUBMIT] = {"Submit", "to submit the job", RPC_UNARY, RPC_USER, false, false,
                            4 * MIB},
    [COORDINATOR_CANCEL] = {"Cancel", "to cancel the job", RPC_UNARY, RPC_USER, true, false,
                            4 * KIB},
    [COORDINATOR_PAUSE] = {"Pause", "to pause the job", RPC_UNARY, RPC_USER, true, false, 4 * KIB},
    [COORDINATOR_RESUME] = {"Resume", "to resume the job", RPC_UNARY, RPC_USER, true, false,
                            4 * KIB},
    [COORDINATOR_REPLAN] = {"Replan", "to replan the job", RPC_UNARY, RPC_USER, true, false,
                            4 * KIB},
    [COORDINATOR_GET_JOB] = {"GetJob", "to show the job", RPC_UNARY, RPC_USER, true, false,
                             4 * KIB},
    [COORDINATOR_LIST_JOBS] = {"ListJobs", "to list jobs", RPC_UNARY, RPC_USER, true, false,
                               4 * KIB},
    [COORDINATOR_LIST_NODES] = {"ListNodes", "to list nodes", RPC_UNARY, RPC_USER, true, false,
                                4 * KIB},
    [COORDINATOR_PLAN] = {"Plan", "to plan the job", RPC_UNARY, RPC_USER, true, false, 4 * MIB},
    [COORDINATOR_GET_LOGS] = {"GetLogs", "to show the job's logs", RPC_UNARY, RPC_USER, true, false,
                              4 * KIB},
    [COORDINATOR_GET_TRACE] = {"GetTrace", "to show the job's trace", RPC_UNARY, RPC_USER, true,
                               false, 4 * KIB},
    [COORDINATOR_GET_CURVE] = {"GetCurve", "to show the job's curve", RPC_UNARY, RPC_USER, true,
                               false, 4 * KIB},
    [COORDINATOR_WATCH_EVENTS] = {"WatchEvents", "to follow events", RPC_HELD, RPC_USER, true,
                                  false, 4 * KIB},
    [COORDINATOR_LIST_EVENTS] = {"ListEvents", "to list events", RPC_UNARY, RPC_USER, true, false,
                                 4 * KIB},

    [COORDINATOR_DRAIN] = {"Drain", "to drain or undrain the node", RPC_UNARY, RPC_ADMIN, true,
                           false, 4 * KIB},
    [COORDINATOR_DRILL] = {"Drill", "to run a drill", RPC_UNARY, RPC_ADMIN, false, false, 4 * KIB},
    [COORDINATOR_ISSUE_TOKEN] = {"IssueToken", "to issue a token", RPC_UNARY, RPC_ADMIN, false,
                                 false, 4 * KIB},
    [COORDINATOR_REVOKE] = {"Revoke", "to revoke a credential", RPC_UNARY, RPC_ADMIN, true, false,
                            4 * KIB},
    [COORDINATOR_LIST_CREDENTIALS] = {"ListCredentials", "to list credentials", RPC_UNARY,
                                      RPC_ADMIN, true, false, 4 * KIB},
    [COORDINATOR_BACKUP] = {"Backup", "to back up the store", RPC_UNARY, RPC_ADMIN, true, false,
                            4 * KIB},

    [COORDINATOR_JOIN] = {"Join", "to join the cluster", RPC_UNARY, RPC_WORKER | RPC_USER, false,
                          false, 4 * KIB, .to_strangers = true},
};

const struct rpc_service service_coordinator = {&gimbal__coordinator__descriptor, methods};

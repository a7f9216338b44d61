/* coordinator_service.h - the numbers of the Coordinator's methods, for its handlers and its
 * callers. */
#ifndef COMMON_RPC_COORDINATOR_SERVICE_H
#define COMMON_RPC_COORDINATOR_SERVICE_H

#include "common/rpc/protocol.h"
#include "proto/coordinator.pb-c.h"

/* In the order of proto/coordinator.proto. */
enum coordinator_method {
    COORDINATOR_HELLO,
    COORDINATOR_REPORT_HARDWARE,
    COORDINATOR_HEARTBEAT,
    COORDINATOR_WATCH_ASSIGNMENTS,
    COORDINATOR_RENDEZVOUS,
    COORDINATOR_READY,
    COORDINATOR_PAUSED,
    COORDINATOR_STAGED,
    COORDINATOR_STOPPED,
    COORDINATOR_PUSH_TELEMETRY,
    COORDINATOR_SUBMIT,
    COORDINATOR_CANCEL,
    COORDINATOR_PAUSE,
    COORDINATOR_RESUME,
    COORDINATOR_REPLAN,
    COORDINATOR_GET_JOB,
    COORDINATOR_LIST_JOBS,
    COORDINATOR_LIST_NODES,
    COORDINATOR_PLAN,
    COORDINATOR_GET_LOGS,
    COORDINATOR_GET_TRACE,
    COORDINATOR_WATCH_EVENTS,
    COORDINATOR_LIST_EVENTS,
    COORDINATOR_DRAIN,
    COORDINATOR_DRILL,
    COORDINATOR_ISSUE_TOKEN,
    COORDINATOR_REVOKE,
    COORDINATOR_LIST_CREDENTIALS,
    COORDINATOR_BACKUP,
    COORDINATOR_JOIN,
    COORDINATOR_METHOD_COUNT
};

/* The status of Submit and Plan when no plan fits the available devices; used for nothing else. */
#define COORDINATOR_NO_PLAN RPC_OUT_OF_RANGE

extern const struct rpc_service service_coordinator;

#endif

/* coordinator.h - the Coordinator's methods by number, for its handlers and its callers. */
#ifndef COMMON_RPC_SERVICES_COORDINATOR_H
#define COMMON_RPC_SERVICES_COORDINATOR_H

#include "common/rpc/method.h"
#include "proto/coordinator.pb-c.h"

/* In the order of proto/coordinator.proto. */
enum coordinator_method {
    COORDINATOR_HELLO,
    COORDINATOR_REPORT_HARDWARE,
    COORDINATOR_HEARTBEAT,
    COORDINATOR_WATCH_ASSIGNMENTS,
    COORDINATOR_RENDEZVOUS,
    COORDINATOR_READY,
    COORDINATOR_STOPPED,
    COORDINATOR_PUSH_TELEMETRY,
    COORDINATOR_SUBMIT,
    COORDINATOR_CANCEL,
    COORDINATOR_GET_JOB,
    COORDINATOR_LIST_JOBS,
    COORDINATOR_LIST_NODES,
    COORDINATOR_PLAN,
    COORDINATOR_GET_LOGS,
    COORDINATOR_WATCH_EVENTS,
    COORDINATOR_DRAIN,
    COORDINATOR_METHOD_COUNT
};

extern const struct rpc_service service_coordinator;

#endif

/* dispatch.c - takes a frame to its handler through a sequence of checks, each of which may answer
 * the call with an error.
 *
 * Nothing in a call is trusted before it is checked, and what costs memory comes last: frame,
 * version, method, role, identity, deadline, term, size, and only then the request itself. */
#include "common/rpc/call.h"

#include "common/base/clock.h"
#include "common/message/message.h"
#include "common/rpc/address.h"
#include "common/rpc/envelope.h"

#include <errno.h>
#include <inttypes.h>

static const struct rpc_method *method_of(const struct rpc_call *call)
{
    return &call->server->options.service->methods[call->method];
}

/* The listener that accepted the call's connection; NULL when it has closed. */
static const struct listener *find_listener(const struct rpc_call *call)
{
    int id = nng_listener_id(nng_pipe_listener(call->pipe));
    for (size_t i = 0; i < call->server->listener_count; i++)
        if (nng_listener_id(call->server->listeners[i]->nng[call->endpoint->held]) == id)
            return call->server->listeners[i];
    return NULL;
}

static enum rpc_status check_frame(struct rpc_call *call, struct error *err)
{
    int rc = envelope_decode(call->frame, &call->envelope, err);
    nng_msg_free(call->frame);
    call->frame = NULL;
    if (rc == 0 && call->envelope->kind != GIMBAL__ENVELOPE__KIND__REQUEST)
        rc = error_set(err, -EPROTO, "the envelope is not that of a request");
    if (rc == 0)
        return RPC_OK;
    call->server->counters.malformed++;
    return RPC_INVALID_ARGUMENT;
}

static enum rpc_status check_version(struct rpc_call *call, struct error *err)
{
    if (envelope_check_version(call->envelope, err) == 0)
        return RPC_OK;
    call->server->counters.wrong_version++;
    return RPC_FAILED_PRECONDITION;
}

static const char *who(unsigned roles)
{
    static const char *const names[] = {[RPC_WORKER] = "workers",
                                        [RPC_USER] = "users",
                                        [RPC_WORKER | RPC_USER] = "workers and users",
                                        [RPC_ADMIN] = "administrators",
                                        [RPC_WORKER | RPC_ADMIN] = "workers and administrators",
                                        [RPC_USER | RPC_ADMIN] = "users and administrators",
                                        [RPC_EVERYBODY] = "everybody"};
    return names[roles & RPC_EVERYBODY];
}

/* The port that people write in the address of this listener. */
static unsigned written_port(const struct listener *listener)
{
    struct rpc_address address;
    if (rpc_address_parse(listener->address, &address, NULL) < 0)
        return 0;
    return address.port - (address.tls ? rpc_address_offset(listener->roles) : 0u);
}

static enum rpc_status check_port(const struct rpc_call *call, struct error *err)
{
    const char *asked = method_of(call)->asked;
    if ((method_of(call)->kind == RPC_HELD) == call->endpoint->held)
        return RPC_OK;
    if (call->endpoint->held)
        error_set(err, 0,
                  "the request %s came in on the port for calls that wait: the port of the address "
                  "is %u",
                  asked, written_port(call->listener));
    else
        error_set(err, 0, "the request %s came in on the wrong port: it is a call that waits",
                  asked);
    return RPC_INVALID_ARGUMENT;
}

static enum rpc_status check_role(const struct rpc_call *call, struct error *err)
{
    const struct rpc_method *method = method_of(call);
    const struct listener *listener = call->listener;
    if (method->roles & listener->roles)
        return RPC_OK;
    error_set(err, 0,
              "the request %s is not open to %s, as whom you call at %s: it takes the certificates "
              "of %s",
              method->asked, who(listener->roles), listener->address, who(method->roles));
    return RPC_PERMISSION_DENIED;
}

/* The method must exist, have a handler, come in on the right socket and be open to the role. */
static enum rpc_status check_method(struct rpc_call *call, struct error *err)
{
    const struct rpc_server *server = call->server;
    const char *service = server->options.service->descriptor->short_name;
    const char *name = call->envelope->method;
    call->method = rpc_service_find(server->options.service, name);
    if (call->method < 0) {
        error_set(err, 0, "%s does not know the request '%.64s': is the caller's release newer?",
                  service, name);
        return RPC_UNIMPLEMENTED;
    }
    if (!server->handlers[call->method].cb) {
        error_set(err, 0, "%s does not take the request %s", service, method_of(call)->asked);
        return RPC_UNIMPLEMENTED;
    }
    enum rpc_status status = check_port(call, err);
    return status == RPC_OK ? check_role(call, err) : status;
}

static enum rpc_status check_identity(struct rpc_call *call, struct error *err)
{
    const struct rpc_server_options *options = &call->server->options;
    if (!options->admit_cb || method_of(call)->to_strangers)
        return RPC_OK;
    return rpc_status_of_errno(
        options->admit_cb(options->data, call->listener->roles, call->envelope, err));
}

static enum rpc_status check_deadline(struct rpc_call *call, struct error *err)
{
    uint64_t waited_ms = call->server->options.clock_cb() - call->arrived_ms;
    uint32_t deadline_ms = call->envelope->deadline_ms;
    if (deadline_ms == 0) {
        error_set(err, 0, "the request %s came without a deadline: every request has one",
                  method_of(call)->asked);
        return RPC_INVALID_ARGUMENT;
    }
    if (waited_ms < deadline_ms)
        return RPC_OK;
    call->server->counters.expired++;
    error_set(err, 0,
              "the request %s waited %" PRIu64 " ms to be handled, its deadline was %" PRIu32 " ms",
              method_of(call)->asked, waited_ms, deadline_ms);
    return RPC_DEADLINE_EXCEEDED;
}

static enum rpc_status check_term(struct rpc_call *call, struct error *err)
{
    const struct rpc_server_options *options = &call->server->options;
    const Gimbal__Envelope *envelope = call->envelope;
    if (method_of(call)->any_term ||
        (envelope->term == options->term && envelope->instance == options->instance))
        return RPC_OK;
    call->server->counters.stale++;
    error_set(err, 0,
              "the request %s is of term %" PRIu64 " (instance %016" PRIx64
              "), this is term %" PRIu64 " (instance %016" PRIx64 "): open a session first",
              method_of(call)->asked, envelope->term, envelope->instance, options->term,
              options->instance);
    return RPC_FAILED_PRECONDITION;
}

static enum rpc_status check_request(struct rpc_call *call, struct error *err)
{
    const struct rpc_method *method = method_of(call);
    const ProtobufCBinaryData *payload = &call->envelope->payload;
    if (payload->len > method->request_bytes_max) {
        error_set(err, 0, "a request %s may have %zu bytes, this one has %zu", method->asked,
                  method->request_bytes_max, payload->len);
        return RPC_RESOURCE_EXHAUSTED;
    }
    if (!method->idempotent && !*call->envelope->idempotency_key) {
        error_set(err, 0, "the request %s changes something: it needs an idempotency key",
                  method->asked);
        return RPC_INVALID_ARGUMENT;
    }
    int rc = message_unpack(call->server->options.service->descriptor->methods[call->method].input,
                            payload->data, payload->len, message_quota(payload->len),
                            &call->request, err);
    if (rc == 0)
        return RPC_OK;
    return rc == -ENOMEM ? RPC_RESOURCE_EXHAUSTED : RPC_INVALID_ARGUMENT;
}

typedef enum rpc_status (*check_fn)(struct rpc_call *call, struct error *err);
static const check_fn checks[] = {check_frame,    check_version, check_method, check_identity,
                                  check_deadline, check_term,    check_request};

void call_run(struct rpc_call *call)
{
    struct endpoint *endpoint = call->endpoint;
    const struct handler *handler = &call->server->handlers[call->method];
    /* Counted before the handler runs: once answered, the object may already be another call. */
    if (!call->kept)
        endpoint->kept_count++;
    call->kept = true;
    call->state = CALL_RUNNING;
    handler->cb(call, handler->data);
    /* If that fails, the existing contexts have to do. */
    call_open_spares(endpoint, NULL);
}

void call_dispatch(struct rpc_call *call)
{
    struct error err = {""};
    call->method = -1;
    call->server->counters.arrived++;
    call->listener = find_listener(call);
    enum rpc_status status = RPC_OK;
    if (!call->listener) {
        error_set(&err, 0, "the connection has closed");
        status = RPC_CANCELLED;
    }
    for (size_t i = 0; i < sizeof checks / sizeof *checks && status == RPC_OK; i++)
        status = checks[i](call, &err);
    if (status != RPC_OK) {
        call_answer(call, status, err.text, NULL);
        return;
    }
    peers_claim(call->server, call->pipe, call->envelope->client, call->endpoint->held);
    const struct rpc_server_options *options = &call->server->options;
    if (options->heard_cb)
        options->heard_cb(options->data, call->listener->roles, call->envelope);
    /* Read before the handler runs: once answered, the object may already be another call. */
    struct histogram *handling = &call->server->handling[call->method];
    uint64_t arrived_ns = call->arrived_ns;
    call_run(call);
    histogram_add(handling, clock_ns() - arrived_ns);
}

/* relay.c - questions, the ranks that wait for each, and the call in progress for it. */
#include "worker/daemon/relay.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/rpc/client.h"
#include "common/rpc/coordinator_service.h"

#include <stdlib.h>
#include <string.h>

/* The server answers a long poll after 20 s at most. */
#define RENDEZVOUS_DEADLINE_MS 30000
/* Prefix of keys whose values the coordinator stores before it answers. */
#define STORED "kept/"

struct waiter {
    uint64_t rank, id;
};

struct question {
    struct relay *relay;
    struct question *next;
    char *job;
    uint64_t epoch;
    char *key;
    bool put;
    uint8_t *value;
    size_t size;
    struct waiter *waiters;
    size_t waiter_count, waiter_capacity;
    struct rpc_pending *pending;
    uint64_t sent_in;  /* term in which it was sent */
    unsigned failures; /* since the last answer */
    bool told;         /* the put was accepted, and those who waited have been told */
};

struct relay {
    struct relay_hooks hooks;
    struct rpc_client *client;
    uint64_t term;
    struct question *questions;
};

struct relay *relay_create(const struct relay_hooks *hooks)
{
    struct relay *relay = xcalloc(1, sizeof *relay);
    relay->hooks = *hooks;
    return relay;
}

/* Remove from the list, and free. */
static void relay_drop(struct question *question)
{
    struct question **link = &question->relay->questions;
    while (*link != question)
        link = &(*link)->next;
    *link = question->next;
    if (question->pending)
        rpc_pending_cancel(question->pending);
    free(question->job);
    free(question->key);
    free(question->value);
    free(question->waiters);
    free(question);
}

void relay_destroy(struct relay *relay)
{
    if (!relay)
        return;
    while (relay->questions)
        relay_drop(relay->questions);
    free(relay);
}

static void answered(void *data, const struct rpc_result *result);

static void call(struct question *question, uint32_t delay_ms)
{
    Gimbal__RendezvousRequest request = GIMBAL__RENDEZVOUS_REQUEST__INIT;
    request.job = question->job;
    request.epoch = question->epoch;
    request.key = question->key;
    request.put = question->put;
    request.value = (ProtobufCBinaryData){.len = question->size, .data = question->value};
    struct rpc_call_options options = {
        .deadline_ms = RENDEZVOUS_DEADLINE_MS, .delay_ms = delay_ms, .once = true};
    question->sent_in = rpc_client_term(question->relay->client);
    question->pending = rpc_client_start(question->relay->client, COORDINATOR_RENDEZVOUS,
                                         &request.base, &options, answered, question);
}

void relay_use(struct relay *relay, struct rpc_client *client)
{
    relay->client = client;
    for (struct question *question = relay->questions; question; question = question->next) {
        if (question->pending)
            rpc_pending_cancel(question->pending);
        question->pending = NULL;
        if (client && !question->told)
            call(question, 0);
    }
}

void relay_renew(struct relay *relay, uint64_t term)
{
    if (relay->term == term)
        return;
    relay->term = term;
    for (struct question *question = relay->questions; question; question = question->next)
        if (question->told && !question->pending)
            call(question, 0);
}

/* Whether a call may succeed later. A put for which the store has no room will not. */
static bool will_pass(const struct question *question, enum rpc_status status)
{
    return status == RPC_UNAVAILABLE || status == RPC_DEADLINE_EXCEEDED ||
           status == RPC_CANCELLED || status == RPC_ABORTED ||
           (status == RPC_RESOURCE_EXHAUSTED && !question->put);
}

static void relay_tell(const struct question *question, const Gimbal__RendezvousReply *reply)
{
    const struct relay_hooks *hooks = &question->relay->hooks;
    Gimbal__ExecutorRendezvous answer = GIMBAL__EXECUTOR_RENDEZVOUS__INIT;
    answer.key = question->key;
    answer.put = question->put;
    answer.value = reply->value;
    for (size_t i = 0; i < question->waiter_count; i++) {
        answer.id = question->waiters[i].id;
        hooks->answer(hooks->data, question->waiters[i].rank, &answer);
    }
}

static void answered(void *data, const struct rpc_result *result)
{
    struct question *question = data;
    const struct relay_hooks *hooks = &question->relay->hooks;
    const Gimbal__RendezvousReply *reply = result->reply;
    question->pending = NULL;
    if (reply && (question->put || reply->there)) {
        if (!question->told)
            relay_tell(question, reply);
        question->told = true;
        if (!question->put || strncmp(question->key, STORED, strlen(STORED)) == 0)
            relay_drop(question);
        return;
    }
    if (reply) {
        question->failures = 0;
        call(question, 0);
        return;
    }
    if (!will_pass(question, result->status))
        for (size_t i = 0; i < question->waiter_count; i++)
            hooks->refused(hooks->data, question->waiters[i].rank, question->sent_in,
                           result->status, result->text);
    double uniform = random_uniform(rpc_client_id(question->relay->client),
                                    question->waiters[0].rank, question->failures);
    call(question, rpc_backoff_ms(question->failures++, uniform));
}

/* A get of the same value that is in progress; NULL: none. */
static struct question *relay_find(const struct relay *relay, const char *job, uint64_t epoch,
                                   const char *key)
{
    for (struct question *question = relay->questions; question; question = question->next)
        if (!question->put && question->epoch == epoch && strcmp(question->key, key) == 0 &&
            strcmp(question->job, job) == 0)
            return question;
    return NULL;
}

static struct question *relay_add(struct relay *relay, const char *job, uint64_t epoch,
                                  const Gimbal__ExecutorRendezvous *asked)
{
    struct question *question = xcalloc(1, sizeof *question);
    question->relay = relay;
    question->job = xstrdup(job);
    question->epoch = epoch;
    question->key = xstrdup(asked->key);
    question->put = asked->put;
    question->size = asked->value.len;
    question->value = xcalloc(1, asked->value.len + 1);
    if (asked->value.len)
        memcpy(question->value, asked->value.data, asked->value.len);
    question->next = relay->questions;
    relay->questions = question;
    return question;
}

void relay_ask(struct relay *relay, uint64_t rank, const char *job, uint64_t epoch,
               const Gimbal__ExecutorRendezvous *asked)
{
    struct question *question = asked->put ? NULL : relay_find(relay, job, epoch, asked->key);
    bool is_new = !question;
    if (is_new)
        question = relay_add(relay, job, epoch, asked);
    question->waiters = grow(question->waiters, question->waiter_count, &question->waiter_capacity,
                             sizeof *question->waiters);
    question->waiters[question->waiter_count++] = (struct waiter){.rank = rank, .id = asked->id};
    if (is_new && relay->client)
        call(question, 0);
}

void relay_forget(struct relay *relay, uint64_t rank)
{
    for (struct question *question = relay->questions, *next; question; question = next) {
        next = question->next;
        size_t kept = 0;
        for (size_t i = 0; i < question->waiter_count; i++)
            if (question->waiters[i].rank != rank)
                question->waiters[kept++] = question->waiters[i];
        question->waiter_count = kept;
        if (kept == 0)
            relay_drop(question);
    }
}

/* history.c - the stream "events", polled for its past and watched for its future. */
#include "coordinator/cli/history.h"

#include "common/base/memory.h"
#include "common/rpc/clock.h"
#include "common/rpc/message.h"
#include "common/rpc/watch.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/signals.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>

#define STREAM "events"
/* Whoever has something to say at once says it well within this time. */
#define PAST_DEADLINE_MS 400

/* NULL for what is no event: of another version, and nothing to stop for. */
static Gimbal__Event *unpack(const Gimbal__StreamRecord *record)
{
    ProtobufCMessage *message;
    size_t size = record->data.len;
    int rc = message_unpack(&gimbal__event__descriptor, record->data.data, size,
                            message_quota(size), &message, NULL);
    return rc < 0 ? NULL : (Gimbal__Event *)message;
}

/* Hand a batch over; true when the callback has had enough. */
static bool hand_over(const Gimbal__StreamBatch *batch, uint64_t *revision, history_cb callback,
                      void *data)
{
    bool enough = false;
    for (size_t i = 0; i < batch->n_records && !enough; i++) {
        Gimbal__Event *event = unpack(batch->records[i]);
        *revision = batch->records[i]->revision;
        if (event)
            enough = callback(data, event);
        message_free((ProtobufCMessage *)event);
    }
    return enough;
}

int history_read(struct client *client, history_cb callback, void *data, struct error *err)
{
    Gimbal__StreamPoll request = GIMBAL__STREAM_POLL__INIT;
    struct client past = *client;
    past.deadline_ms = PAST_DEADLINE_MS;
    request.stream = STREAM;
    request.term = rpc_client_term(client->rpc);
    for (bool enough = false; !enough;) {
        ProtobufCMessage *reply;
        int code = client_call(&past, COORDINATOR_WATCH_EVENTS, &request.base, 0, &reply, err);
        if (past.status == RPC_DEADLINE_EXCEEDED)
            return EXIT_DONE;
        if (code != EXIT_DONE)
            return code;
        const Gimbal__StreamBatch *batch = (const Gimbal__StreamBatch *)reply;
        enough = batch->n_records == 0 || hand_over(batch, &request.revision, callback, data);
        message_free(reply);
    }
    return EXIT_DONE;
}

/* What a watch has handed over and nobody has looked at: callbacks of the client may not make
 * calls, those of a history may. */
struct follower {
    struct rpc_watch *watch;
    Gimbal__Event **events;
    size_t count, capacity;
    enum rpc_status broken; /* the watch rests; RPC_OK: it goes on */
    struct error words;
};

static void take_records(void *data, const struct rpc_watch_event *batch)
{
    struct follower *follower = data;
    follower->broken = batch->status;
    if (batch->status != RPC_OK)
        error_set(&follower->words, 0, "%s", batch->text);
    for (size_t i = 0; i < batch->count; i++) {
        Gimbal__Event *event = unpack(batch->records[i]);
        if (!event)
            continue;
        follower->events =
            grow(follower->events, follower->count, &follower->capacity, sizeof *follower->events);
        follower->events[follower->count++] = event;
    }
}

/* Whatever was handed over is freed, also what comes after the callback had enough. */
static bool drain(struct follower *follower, history_cb callback, void *data)
{
    bool enough = false;
    for (size_t i = 0; i < follower->count; i++) {
        enough = enough || callback(data, follower->events[i]);
        message_free((ProtobufCMessage *)follower->events[i]);
    }
    follower->count = 0;
    return enough;
}

/* A coordinator that was started anew has another history: from its beginning. */
static int mend(struct follower *follower, struct client *client, struct error *err)
{
    if (follower->broken != RPC_FAILED_PRECONDITION) {
        *err = follower->words;
        return exit_of_status(follower->broken);
    }
    int code = client_hello(client, err);
    if (code != EXIT_DONE)
        return code;
    follower->broken = RPC_OK;
    rpc_watch_resume(follower->watch, 0);
    return EXIT_DONE;
}

/* Wait for events, a signal, the end or the time; EXIT_DONE: look what has come. */
static int wait_for_more(const struct history_options *options, uint64_t until_ms,
                         struct error *err)
{
    struct pollfd fds[] = {
        {rpc_client_fd(options->client->rpc), POLLIN, 0},
        {options->signals, POLLIN, 0},
        {options->end_fd, POLLIN, 0},
    };
    uint64_t now_ms = rpc_clock_ms();
    if (now_ms >= until_ms)
        return error_set(err, EXIT_TIMEOUT, "not within %g s", options->timeout_s);
    poll(fds, 3, until_ms == UINT64_MAX ? -1 : (int)rpc_clock_left_ms(until_ms, now_ms));
    int signal = options->signals >= 0 ? signals_take(options->signals) : 0;
    if (signal)
        return EXIT_SIGNAL + signal;
    return options->end_fd >= 0 && fds[2].revents ? EXIT_FAILED : EXIT_DONE;
}

int history_follow(const struct history_options *options, history_cb callback, void *data,
                   struct error *err)
{
    struct follower follower = {0};
    uint64_t until_ms = UINT64_MAX;
    int code = EXIT_DONE;
    if (options->timeout_s > 0)
        until_ms = rpc_clock_ms() + (uint64_t)(options->timeout_s * 1000);
    follower.watch = rpc_watch_start(options->client->rpc, COORDINATOR_WATCH_EVENTS, STREAM, 0,
                                     take_records, &follower);
    while (code == EXIT_DONE) {
        code = wait_for_more(options, until_ms, err);
        rpc_client_poll(options->client->rpc, 0);
        if (drain(&follower, callback, data)) {
            code = EXIT_DONE;
            break;
        }
        if (code == EXIT_DONE && follower.broken != RPC_OK)
            code = mend(&follower, options->client, err);
    }
    rpc_watch_stop(follower.watch);
    free(follower.events);
    return code;
}

void history_print(const Gimbal__Event *event, FILE *out)
{
    time_t seconds = (time_t)(event->unix_ms / 1000);
    struct tm local;
    char text[32] = "";
    if (localtime_r(&seconds, &local))
        strftime(text, sizeof text, "%F %T", &local);
    fprintf(out, "%s.%03u  %-16s %s\n", text, (unsigned)(event->unix_ms % 1000), event->kind,
            event->text);
}

json_t *history_json(const Gimbal__Event *event)
{
    json_t *more = *event->json ? json_loads(event->json, 0, NULL) : NULL;
    return output_object("Event", json_pack("{s:f, s:s, s:s, s:s, s:s, s:o}", "unix_s",
                                            (double)event->unix_ms / 1000, "event", event->kind,
                                            "job", event->job, "node", event->node, "text",
                                            event->text, "more", more ? more : json_null()));
}

/* history.c - past events by pages, future ones by watching the stream. */
#include "coordinator/cli/following/history.h"

#include "common/base/memory.h"
#include "common/base/utf8.h"
#include "common/rpc/clock.h"
#include "common/rpc/message.h"
#include "common/rpc/watch.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/reader.h"
#include "coordinator/cli/signals.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STREAM "events"

/* NULL: not an event, but something of another version, which is ignored. */
static Gimbal__Event *unpack(const Gimbal__StreamRecord *record)
{
    ProtobufCMessage *message;
    size_t size = record->data.len;
    int rc = message_unpack(&gimbal__event__descriptor, record->data.data, size,
                            message_quota(size), &message, NULL);
    return rc < 0 ? NULL : (Gimbal__Event *)message;
}

/* Pass on a page; true: the callback has had enough. */
static bool hand_over(const Gimbal__ListEventsReply *page, history_cb callback, void *data)
{
    bool enough = false;
    for (size_t i = 0; i < page->n_records && !enough; i++) {
        Gimbal__Event *event = unpack(page->records[i]);
        if (event)
            enough = callback(data, event);
        message_free((ProtobufCMessage *)event);
    }
    return enough;
}

/* Read all events after *revision, which is then where a watch has to begin. */
static int read_pages(struct client *client, const char *job, uint64_t *revision, bool *enough,
                      history_cb callback, void *data, struct error *err)
{
    Gimbal__ListEventsRequest request = GIMBAL__LIST_EVENTS_REQUEST__INIT;
    request.job = (char *)(job ? job : "");
    request.after = *revision;
    for (bool more = true; more && !*enough;) {
        ProtobufCMessage *reply;
        int code = client_call(client, COORDINATOR_LIST_EVENTS, &request.base, 0, &reply, err);
        if (code != EXIT_DONE)
            return code;
        const Gimbal__ListEventsReply *page = (const Gimbal__ListEventsReply *)reply;
        more = page->more && page->n_records > 0;
        if (more)
            request.after = page->records[page->n_records - 1]->revision;
        *revision = page->revision;
        *enough = hand_over(page, callback, data);
        message_free(reply);
    }
    return EXIT_DONE;
}

int history_read(struct client *client, const char *job, history_cb callback, void *data,
                 struct error *err)
{
    uint64_t revision = 0;
    bool enough = false;
    return read_pages(client, job, &revision, &enough, callback, data, err);
}

/* What a watch has delivered and nobody has looked at yet: callbacks of the client must not make
 * calls, but those of a history may. */
struct follower {
    struct rpc_watch *watch;
    Gimbal__Event **events;
    size_t count, capacity;
    uint64_t revision;      /* delivered */
    enum rpc_status broken; /* why the watch has stopped; RPC_OK: it goes on */
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
        follower->revision = batch->records[i]->revision;
        if (!event)
            continue;
        follower->events =
            grow(follower->events, follower->count, &follower->capacity, sizeof *follower->events);
        follower->events[follower->count++] = event;
    }
}

/* Frees everything that was delivered, including what follows after the callback has had enough. */
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

/* If the watch cannot continue, because the coordinator was restarted or no longer keeps the next
 * event in its stream, read pages of the past instead: revisions continue across all of that. */
static int mend(struct follower *follower, const struct history_options *options, bool *enough,
                history_cb callback, void *data, struct error *err)
{
    enum rpc_status broken = follower->broken;
    int code = EXIT_DONE;
    if (broken != RPC_FAILED_PRECONDITION && broken != RPC_OUT_OF_RANGE &&
        broken != RPC_DATA_LOSS) {
        *err = follower->words;
        return exit_of_status(broken);
    }
    if (broken == RPC_FAILED_PRECONDITION)
        code = client_hello(options->client, err);
    if (code == EXIT_DONE)
        code = read_pages(options->client, options->job, &follower->revision, enough, callback,
                          data, err);
    if (code == EXIT_DONE && !*enough) {
        follower->broken = RPC_OK;
        rpc_watch_resume(follower->watch, follower->revision);
    }
    return code;
}

/* Wait for events, a signal, the end or the timeout; EXIT_DONE: see what has arrived. */
static int wait_for_more(const struct history_options *options, uint64_t until_ms,
                         struct error *err)
{
    struct pollfd fds[] = {
        {rpc_client_fd(options->client->rpc), POLLIN, 0},
        {options->signals, POLLIN, 0},
        {options->end_fd, POLLIN, 0},
        reader_poll(),
    };
    uint64_t now_ms = rpc_clock_ms();
    if (now_ms >= until_ms)
        return error_set(err, EXIT_TIMEOUT, "gave up after %g s", options->timeout_s);
    poll(fds, options->prints ? 4 : 3,
         until_ms == UINT64_MAX ? -1 : (int)rpc_clock_left_ms(until_ms, now_ms));
    int signal = options->signals >= 0 ? signals_take(options->signals) : 0;
    if (signal)
        return EXIT_SIGNAL + signal;
    int code = options->prints ? reader_code(&fds[3]) : EXIT_DONE;
    if (code != EXIT_DONE)
        return code;
    return options->end_fd >= 0 && fds[2].revents ? EXIT_FAILED : EXIT_DONE;
}

/* Follow new events until the callback has had enough. */
static int watch(struct follower *follower, const struct history_options *options,
                 history_cb callback, void *data, struct error *err)
{
    uint64_t until_ms = UINT64_MAX;
    int code = EXIT_DONE;
    bool enough = false;
    if (options->timeout_s > 0)
        until_ms = (options->from_ms ? options->from_ms : rpc_clock_ms()) +
                   (uint64_t)(options->timeout_s * 1000);
    follower->watch = rpc_watch_start(options->client->rpc, COORDINATOR_WATCH_EVENTS, STREAM,
                                      follower->revision, take_records, follower);
    while (code == EXIT_DONE && !enough) {
        code = wait_for_more(options, until_ms, err);
        rpc_client_poll(options->client->rpc, 0);
        enough = drain(follower, callback, data);
        if (code == EXIT_DONE && !enough && follower->broken != RPC_OK)
            code = mend(follower, options, &enough, callback, data, err);
    }
    rpc_watch_stop(follower->watch);
    free(follower->events);
    if (enough)
        err->text[0] = '\0'; /* the last of it arrived when the time was over */
    return enough ? EXIT_DONE : code;
}

int history_follow(const struct history_options *options, history_cb callback, void *data,
                   struct error *err)
{
    struct follower follower = {0};
    bool enough = false;
    int code =
        read_pages(options->client, options->job, &follower.revision, &enough, callback, data, err);
    return code == EXIT_DONE && !enough ? watch(&follower, options, callback, data, err) : code;
}

void history_print(const Gimbal__Event *event, FILE *out)
{
    time_t seconds = (time_t)(event->unix_ms / 1000);
    struct tm local;
    char text[32] = "";
    if (localtime_r(&seconds, &local))
        strftime(text, sizeof text, "%F %T", &local);
    char *words = utf8_clean(event->text, strlen(event->text)); /* it may contain a user's words */
    fprintf(out, "%s.%03u  %-16s %s\n", text, (unsigned)(event->unix_ms % 1000), event->kind,
            words);
    free(words);
}

/* events.c - past events by pages, future ones by watching the stream; those of one job become its
 * live line. */
#include "coordinator/cli/events.h"

#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/message/message.h"
#include "common/rpc/streams.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/process.h"
#include "coordinator/cli/tables.h"

#define STREAM "events"

/* NULL: not an event, but something of another version, which is ignored. */
static Gimbal__Event *history_unpack(const Gimbal__StreamRecord *record)
{
    ProtobufCMessage *message;
    size_t size = record->data.len;
    int rc = message_unpack(&gimbal__event__descriptor, record->data.data, size,
                            message_quota(size), &message, NULL);
    return rc < 0 ? NULL : (Gimbal__Event *)message;
}

/* Pass on a page; true: the callback has had enough. */
static bool history_hand_over(const Gimbal__ListEventsReply *page, history_cb callback, void *data)
{
    bool enough = false;
    for (size_t i = 0; i < page->n_records && !enough; i++) {
        Gimbal__Event *event = history_unpack(page->records[i]);
        if (event)
            enough = callback(data, event);
        message_free((ProtobufCMessage *)event);
    }
    return enough;
}

/* Read all events after *revision, which is then where a watch has to begin. */
static int history_read_pages(struct client *client, const char *job, uint64_t *revision,
                              bool *enough, history_cb callback, void *data, struct error *err)
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
        *enough = history_hand_over(page, callback, data);
        message_free(reply);
    }
    return EXIT_DONE;
}

int history_read(struct client *client, const char *job, history_cb callback, void *data,
                 struct error *err)
{
    uint64_t revision = 0;
    bool enough = false;
    return history_read_pages(client, job, &revision, &enough, callback, data, err);
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

static void history_take_records(void *data, const struct rpc_watch_event *batch)
{
    struct follower *follower = data;
    follower->broken = batch->status;
    if (batch->status != RPC_OK)
        error_set(&follower->words, 0, "%s", batch->text);
    for (size_t i = 0; i < batch->count; i++) {
        Gimbal__Event *event = history_unpack(batch->records[i]);
        follower->revision = batch->records[i]->revision;
        if (!event)
            continue;
        follower->events =
            grow(follower->events, follower->count, &follower->capacity, sizeof *follower->events);
        follower->events[follower->count++] = event;
    }
}

/* Frees everything that was delivered, including what follows after the callback has had enough. */
static bool history_drain(struct follower *follower, history_cb callback, void *data)
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
static int history_mend(struct follower *follower, const struct history_options *options,
                        bool *enough, history_cb callback, void *data, struct error *err)
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
        code = history_read_pages(options->client, options->job, &follower->revision, enough,
                                  callback, data, err);
    if (code == EXIT_DONE && !*enough) {
        follower->broken = RPC_OK;
        rpc_watch_resume(follower->watch, follower->revision);
    }
    return code;
}

/* Wait for events, a signal, the end or the timeout; EXIT_DONE: see what has arrived. */
static int history_wait(const struct history_options *options, uint64_t until_ms, struct error *err)
{
    struct pollfd fds[] = {
        {rpc_client_fd(options->client->rpc), POLLIN, 0},
        {options->signals, POLLIN, 0},
        {options->end_fd, POLLIN, 0},
        reader_poll(),
    };
    uint64_t now_ms = clock_ms();
    if (now_ms >= until_ms)
        return error_set(err, EXIT_TIMEOUT, "gave up after %g s", options->timeout_s);
    poll(fds, options->prints ? 4 : 3,
         until_ms == UINT64_MAX ? -1 : (int)clock_left_ms(until_ms, now_ms));
    int signal = options->signals >= 0 ? signals_take(options->signals) : 0;
    if (signal)
        return EXIT_SIGNAL + signal;
    int code = options->prints ? reader_code(&fds[3]) : EXIT_DONE;
    if (code != EXIT_DONE)
        return code;
    return options->end_fd >= 0 && fds[2].revents ? EXIT_FAILED : EXIT_DONE;
}

/* Follow new events until the callback has had enough. */
static int history_watch(struct follower *follower, const struct history_options *options,
                         history_cb callback, void *data, struct error *err)
{
    uint64_t until_ms = UINT64_MAX;
    int code = EXIT_DONE;
    bool enough = false;
    if (options->timeout_s > 0)
        until_ms = (options->from_ms ? options->from_ms : clock_ms()) +
                   (uint64_t)(options->timeout_s * 1000);
    follower->watch = rpc_watch_start(options->client->rpc, COORDINATOR_WATCH_EVENTS, STREAM,
                                      follower->revision, history_take_records, follower);
    while (code == EXIT_DONE && !enough) {
        code = history_wait(options, until_ms, err);
        rpc_client_poll(options->client->rpc, 0);
        enough = history_drain(follower, callback, data);
        if (code == EXIT_DONE && !enough && follower->broken != RPC_OK)
            code = history_mend(follower, options, &enough, callback, data, err);
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
    int code = history_read_pages(options->client, options->job, &follower.revision, &enough,
                                  callback, data, err);
    return code == EXIT_DONE && !enough ? history_watch(&follower, options, callback, data, err)
                                        : code;
}

bool history_is_end(const char *kind)
{
    return strcmp(kind, "job-done") == 0 || strcmp(kind, "job-failed") == 0 ||
           strcmp(kind, "job-cancelled") == 0;
}

void history_print(const Gimbal__Event *event, FILE *out)
{
    char text[32];
    output_print_time(text, sizeof text, event->unix_ms);
    char *words = text_clean(event->text, strlen(event->text)); /* it may contain a user's words */
    fprintf(out, "%s.%03u  %-16s %s\n", text, (unsigned)(event->unix_ms % 1000), event->kind,
            words);
    free(words);
}

void follow_init(struct follow *follow, const char *job, const char *name,
                 struct progress *progress)
{
    *follow = (struct follow){.job = job, .progress = progress};
    follow->state = (struct progress_state){.name = name, .loss = NAN, .heldout_loss = NAN};
}

void follow_finish(struct follow *follow)
{
    free(follow->sample);
    follow->sample = NULL;
}

static double follow_number(const json_t *json, const char *key, double otherwise)
{
    const json_t *value = json_object_get(json, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static void follow_take_step(struct follow *follow, const json_t *json)
{
    struct progress_state *state = &follow->state;
    state->step = (uint64_t)follow_number(json, "step", (double)state->step);
    state->step_count = (uint64_t)follow_number(json, "steps", (double)state->step_count);
    state->loss = follow_number(json, "loss", state->loss);
    state->tokens_per_s = follow_number(json, "tokens_per_s", state->tokens_per_s);
    state->step_time_s = follow_number(json, "step_time_s", state->step_time_s);
}

static void follow_take_evaluation(struct follow *follow, const json_t *json)
{
    follow->state.heldout_loss = follow_number(json, "loss", follow->state.heldout_loss);
}

/* From the plan itself, as in "p-7f3a pp2·tp2·dp2". */
static void follow_take_plan(struct follow *follow, const json_t *json)
{
    char division[64] = "";
    struct plan *plan;
    json_t *content = json_object_get(json, "content");
    char *text = content ? json_dumps(content, 0) : NULL;
    const char *id = json_string_value(json_object_get(json, "plan"));
    if (text && plan_decode(text, &plan, NULL) == 0) {
        plan_print(division, sizeof division, plan);
        plan_destroy(plan);
    }
    snprintf(follow->plan_text, sizeof follow->plan_text, "%s %s", id ? id : "", division);
    follow->state.plan = follow->plan_text;
    free(text);
}

static void follow_take_text(char **out, const char *text)
{
    free(*out);
    *out = text_clean(text, strlen(text));
}

static bool follow_take(void *data, const Gimbal__Event *event)
{
    struct follow *follow = data;
    if (strcmp(event->job, follow->job) != 0)
        return false;
    if (follow->events_as_json)
        output_print_object(OUTPUT_JSONL, resource_event(event), stdout);
    if (follow->event_cb)
        follow->event_cb(follow->data, event);
    json_t *json = *event->json ? json_loads(event->json, 0, NULL) : NULL;
    if (strcmp(event->kind, "step") == 0)
        follow_take_step(follow, json);
    else if (strcmp(event->kind, "evaluation") == 0)
        follow_take_evaluation(follow, json);
    else if (strcmp(event->kind, "sample") == 0)
        follow_take_text(&follow->sample, event->text);
    else
        progress_note(follow->progress, "%s", event->text);
    if (strcmp(event->kind, "plan-chosen") == 0)
        follow_take_plan(follow, json);
    json_decref(json);
    if (follow->state.step)
        progress_update(follow->progress, &follow->state, (double)clock_ms() / 1000);
    follow->over = history_is_end(event->kind);
    return follow->over;
}

/* A job without a feasible plan ends with the exit code that its submission would have had; one
 * that could not be saved with that of a file that cannot be written. */
static int follow_exit_of_cause(const char *cause)
{
    if (strcmp(cause, "InfeasibleMemory") == 0)
        return EXIT_NO_PLAN;
    if (strcmp(cause, "NoSpace") == 0 || strcmp(cause, "NotSaved") == 0)
        return EXIT_IO;
    return strcmp(cause, "PlanRefused") == 0 ? EXIT_INPUT : EXIT_FAILED;
}

/* Ask the job itself how it ended. */
static int follow_conclude(const struct follow *follow, struct client *client, struct error *err)
{
    Gimbal__GetJobReply *reply;
    int code = client_get_job(client, follow->job, &reply, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__JobStatus *status = reply->status;
    if (status && status->state != GIMBAL__JOB_STATUS__STATE__DONE)
        code = error_set(err, follow_exit_of_cause(status->cause), "%s %s: %s", follow->job,
                         resource_job_state(status->state), status->reason);
    message_free(&reply->base);
    return code;
}

int follow_run(struct follow *follow, const struct history_options *options, struct error *err)
{
    struct history_options of_job = *options;
    of_job.job = follow->job;
    int code = history_follow(&of_job, follow_take, follow, err);
    progress_close(follow->progress);
    return code == EXIT_DONE ? follow_conclude(follow, options->client, err) : code;
}

#define PERIOD_MS 1000

/* On a terminal each printing replaces the one before. */
static void repeat_show(const struct invocation *invocation, const char *text)
{
    if (invocation->common.output < OUTPUT_JSON && isatty(STDOUT_FILENO))
        fputs("\033[H\033[2J", stdout);
    fputs(text, stdout);
    fflush(stdout);
}

/* *last is what was printed before, and is replaced by what is printed. */
static int repeat_print_changed(const struct invocation *invocation, repeat_print_cb print,
                                struct client *client, char **last, struct error *err)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return error_set(err, EXIT_INTERNAL, "no memory to print into");
    int code = print(invocation, client, out, err);
    fclose(out);
    if (code == EXIT_DONE && (!*last || strcmp(*last, text) != 0))
        repeat_show(invocation, text);
    free(*last);
    *last = text;
    return code;
}

static int repeat_watch(const struct invocation *invocation, repeat_print_cb print, int signals,
                        struct client *client, struct error *err)
{
    double timeout_s = invocation->common.timeout_s;
    uint64_t until_ms = timeout_s > 0 ? clock_ms() + (uint64_t)(timeout_s * 1000) : UINT64_MAX;
    char *last = NULL;
    int code;
    while ((code = repeat_print_changed(invocation, print, client, &last, err)) == EXIT_DONE) {
        struct pollfd fds[] = {{.fd = signals, .events = POLLIN}, reader_poll()};
        uint32_t left_ms = clock_left_ms(until_ms, clock_ms());
        poll(fds, 2, left_ms < PERIOD_MS ? (int)left_ms : PERIOD_MS);
        int signal = signals_take(signals);
        code = signal ? EXIT_SIGNAL + signal : reader_code(&fds[1]);
        if (code == EXIT_DONE && clock_ms() >= until_ms)
            code = error_set(err, EXIT_TIMEOUT, "gave up after %g s", timeout_s);
        if (code != EXIT_DONE)
            break;
    }
    free(last);
    return code;
}

int repeat_run(const struct invocation *invocation, repeat_print_cb print, struct error *err)
{
    struct client client = {0};
    int signals = -1;
    if (invocation->common.watch) {
        signals = signals_open(err); /* before the client has threads */
        if (signals < 0)
            return EXIT_INTERNAL;
    }
    int code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = signals < 0 ? print(invocation, &client, stdout, err)
                           : repeat_watch(invocation, print, signals, &client, err);
    client_close(&client);
    if (signals >= 0)
        close(signals);
    return code;
}

/* fake_executor.c - speaks an executor's protocol, trains nothing, and behaves as it is asked.
 *
 * The job's text is a list of words:
 *   steps=N    report N steps and stop as done; else report one and train for ever
 *   meet       before ready, put a value under "rank-R" and get that under "other"
 *   crash=N    abort in step N, after a line on stderr
 *   deafening  ignore SIGTERM, and once it trains also the worker
 *   breed      have a child process that ignores SIGTERM
 *   rude       send bytes that are no message */
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/message/channel.h"
#include "common/message/message.h"
#include "proto/executor.pb-c.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static struct channel channel_to_worker;

static void send_event(Gimbal__ExecutorEvent *event)
{
    struct error err;
    if (channel_write(&channel_to_worker, &event->base, &err) == 0)
        return;
    log_line(LOG_ERROR, "%s", err.text);
    exit(EXIT_FAILURE);
}

/* The next command, within timeout_ms; NULL when none came. */
static Gimbal__ExecutorCommand *next(int timeout_ms)
{
    ProtobufCMessage *message;
    struct error err;
    int rc = channel_read(&channel_to_worker, &gimbal__executor_command__descriptor, timeout_ms,
                          &message, &err);
    if (rc < 0) {
        log_line(LOG_ERROR, "%s", err.text);
        exit(EXIT_FAILURE);
    }
    return rc > 0 ? (Gimbal__ExecutorCommand *)message : NULL;
}

/* The number behind "word=" in the job's text; missing if there is none. */
static uint64_t number(const char *text, const char *word, uint64_t missing)
{
    const char *at = strstr(text, word);
    return at ? strtoull(at + strlen(word), NULL, 10) : missing;
}

static void send_profiles(const char *devices)
{
    static char profile[] = "{\"fake\": 1}";
    char *profiles[64];
    Gimbal__ExecutorProfile message = GIMBAL__EXECUTOR_PROFILE__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    message.device_json = profiles;
    profiles[message.n_device_json++] = profile;
    for (const char *at = devices; (at = strchr(at, ';')); at++)
        profiles[message.n_device_json++] = profile;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_PROFILE;
    event.profile = &message;
    send_event(&event);
}

static void send_no_devices(void)
{
    Gimbal__ExecutorDevices message = GIMBAL__EXECUTOR_DEVICES__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    message.reason = (char *)"this executor is a fake";
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_DEVICES;
    event.devices = &message;
    send_event(&event);
}

/* Put a value, or without one, get it. */
static void ask(uint64_t id, const char *key, const char *value)
{
    Gimbal__ExecutorRendezvous question = GIMBAL__EXECUTOR_RENDEZVOUS__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    question.id = id;
    question.key = (char *)key;
    question.put = value != NULL;
    if (value)
        question.value = (ProtobufCBinaryData){.len = strlen(value), .data = (uint8_t *)value};
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_RENDEZVOUS;
    event.rendezvous = &question;
    send_event(&event);
}

/* Ask first: who sees the value that was put knows that the question is on its way. */
static void meet(uint32_t rank)
{
    enum { GET = 1, PUT = 2 };
    char *key = xasprintf("rank-%" PRIu32, rank);
    ask(GET, "other", NULL);
    ask(PUT, key, "here");
    free(key);
    for (uint64_t answered = 0; answered != (GET | PUT);) {
        Gimbal__ExecutorCommand *answer = next(-1);
        if (answer->command_case != GIMBAL__EXECUTOR_COMMAND__COMMAND_RENDEZVOUS)
            abort();
        answered |= answer->rendezvous->id;
        if (answer->rendezvous->id == GET)
            log_line(LOG_INFO, "other is %.*s", (int)answer->rendezvous->value.len,
                     (const char *)answer->rendezvous->value.data);
        message_free(&answer->base);
    }
}

static void send_ready(const Gimbal__Assignment *assignment)
{
    Gimbal__ReadyRequest ready = GIMBAL__READY_REQUEST__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    ready.job = assignment->job;
    ready.epoch = assignment->epoch;
    ready.rank = assignment->rank;
    ready.program_hash = assignment->program_hash;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_READY;
    event.ready = &ready;
    send_event(&event);
}

/* Without its job: the worker knows whose it is. */
static void send_step(uint64_t step)
{
    Gimbal__StepRecord record = GIMBAL__STEP_RECORD__INIT;
    Gimbal__TelemetryRecord telemetry = GIMBAL__TELEMETRY_RECORD__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    record.step = step;
    record.loss = 1.0 / (double)step;
    telemetry.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_STEP;
    telemetry.step = &record;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_TELEMETRY;
    event.telemetry = &telemetry;
    send_event(&event);
}

static void send_done(uint64_t step)
{
    Gimbal__StoppedRequest stopped = GIMBAL__STOPPED_REQUEST__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    stopped.cause = GIMBAL__STOPPED_REQUEST__CAUSE__DONE;
    stopped.step = step;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_STOPPED;
    event.stopped = &stopped;
    send_event(&event);
}

static void breed(void)
{
    static const char *const arguments[] = {"sh", "-c", "trap '' TERM; exec sleep 1000", NULL};
    pid_t pid;
    if (posix_spawnp(&pid, "sh", NULL, NULL, (char **)arguments, environ) != 0)
        abort();
}

/* For a number of steps, or one step that never ends. */
static void train(const char *text)
{
    uint64_t steps = number(text, "steps=", 0), crash = number(text, "crash=", 0);
    for (uint64_t step = 1; step <= steps || crash; step++) {
        if (step == crash) {
            fprintf(stderr, "step %" PRIu64 " went wrong\n", step);
            abort();
        }
        send_step(step);
    }
    if (steps) {
        send_done(steps);
        return;
    }
    send_step(1);
    while (strstr(text, "deafening"))
        pause();
    for (;;)
        message_free(&next(-1)->base);
}

static void wait_for_go(void)
{
    bool go = false;
    while (!go) {
        Gimbal__ExecutorCommand *command = next(-1);
        go = command->command_case == GIMBAL__EXECUTOR_COMMAND__COMMAND_GO;
        message_free(&command->base);
    }
}

static void obey(const Gimbal__Assignment *assignment)
{
    const char *text = assignment->job_yaml;
    if (strstr(text, "deafening"))
        signal(SIGTERM, SIG_IGN);
    if (strstr(text, "breed"))
        breed();
    if (strstr(text, "rude") && write(channel_to_worker.fd, "\377\377\377\377", 4) != 4)
        abort();
    if (strstr(text, "meet"))
        meet(assignment->rank);
    send_ready(assignment);
    wait_for_go();
    train(text);
}

int main(int argc, char **argv)
{
    log_open("executor", LOG_INFO);
    signal(SIGPIPE, SIG_IGN);
    if (argc < 3 || strcmp(argv[1], "--channel") != 0)
        return 64;
    channel_open(&channel_to_worker, atoi(argv[2]));
    bool lists = argc > 3 && strcmp(argv[3], "--list") == 0;
    if (lists || (argc > 3 && strcmp(argv[3], "--probe") == 0)) {
        if (lists)
            send_no_devices();
        else
            send_profiles(argc > 5 ? argv[5] : "");
        channel_close(&channel_to_worker);
        return EXIT_SUCCESS;
    }
    Gimbal__ExecutorCommand *first = next(-1);
    obey(first->assignment);
    message_free(&first->base);
    channel_close(&channel_to_worker);
    return EXIT_SUCCESS;
}

/* demo.c - `gimbal demo`: a real cluster on this machine trains a small model. It starts from
 * nothing and leaves nothing behind. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/demo/cluster.h"
#include "coordinator/cli/demo/demojob.h"
#include "coordinator/cli/demo/demoresult.h"
#include "coordinator/cli/demo/mishap.h"
#include "coordinator/cli/events.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/process.h"
#include "coordinator/cli/tables.h"

#include "common/base/memory.h"
#include "common/plan/plan.h"
#include "common/rpc/message.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOIN_TIMEOUT_S 120.0
#define PLANS 8 /* rows of the table */

struct demo_values {
    const char *text;
    int64_t steps, workers;
    bool keep, undisturbed;
};

static const struct flag demo_flags[] = {
    {"steps", 0, FLAG_NUMBER, offsetof(struct demo_values, steps), "N", "training steps (300)",
     .least = 1, .standard = 300},
    {"workers", 0, FLAG_NUMBER, offsetof(struct demo_values, workers), "N",
     "number of workers (4), at most 26", .least = 1, .standard = 4},
    {"text", 0, FLAG_TEXT, offsetof(struct demo_values, text), "PATH",
     "a file or folder of text to train on (" DEMOJOB_TEXT ")"},
    {"keep", 0, FLAG_SWITCH, offsetof(struct demo_values, keep), NULL,
     "keep the folder with the logs"},
    {"undisturbed", 0, FLAG_SWITCH, offsetof(struct demo_values, undisturbed), NULL,
     "do not kill a worker halfway"},
    {.name = NULL},
};

struct demo {
    const struct invocation *invocation;
    const struct demo_values *values;
    FILE *people; /* for tables: stdout, or stderr if stdout is for JSON */
    struct cluster cluster;
    struct client client;
    struct progress progress;
    struct follow follow;
    struct mishap mishap;
    int signals;
    uint64_t executor_bytes;
    int joining; /* how the last look at the nodes went, an enum exit_code */
    struct error joining_words;
};

static void say(const struct demo *demo, const char *text)
{
    if (!demo->invocation->common.quiet)
        fprintf(stderr, "%s\n", text);
}

static struct history_options waiting(struct demo *demo, double timeout_s)
{
    return (struct history_options){.client = &demo->client,
                                    .signals = demo->signals,
                                    .end_fd = demo->cluster.ended,
                                    .timeout_s = timeout_s};
}

/* *reply is the caller's, for message_free(). *alive: at least as many workers are alive as were
 * started. */
static int list_nodes(struct demo *demo, ProtobufCMessage **reply, bool *alive, struct error *err)
{
    Gimbal__ListNodesRequest request = GIMBAL__LIST_NODES_REQUEST__INIT;
    int code = client_call(&demo->client, COORDINATOR_LIST_NODES, &request.base, 0, reply, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__ListNodesReply *list = (const Gimbal__ListNodesReply *)*reply;
    int64_t count = 0;
    for (size_t i = 0; i < list->n_nodes; i++)
        count += list->nodes[i]->state == GIMBAL__NODE_STATUS__STATE__ALIVE;
    *alive = count >= demo->values->workers;
    return EXIT_DONE;
}

/* An event about a node: perhaps the last one has joined. */
static bool all_joined(void *data, const Gimbal__Event *event)
{
    struct demo *demo = data;
    ProtobufCMessage *reply;
    bool alive;
    if (strncmp(event->kind, "node-", 5) != 0)
        return false;
    progress_note(&demo->progress, "%s", event->text);
    demo->joining = list_nodes(demo, &reply, &alive, &demo->joining_words);
    if (demo->joining != EXIT_DONE)
        return true;
    message_free(reply);
    return alive;
}

static int show_nodes(struct demo *demo, struct error *err)
{
    ProtobufCMessage *reply;
    bool alive;
    int code = list_nodes(demo, &reply, &alive, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__ListNodesReply *list = (const Gimbal__ListNodesReply *)reply;
    struct common table = {.output = OUTPUT_TABLE};
    fputc('\n', demo->people);
    nodetable_print(&table, list->nodes, list->n_nodes, demo->people);
    fputc('\n', demo->people);
    message_free(reply);
    return EXIT_DONE;
}

static int gather(struct demo *demo, struct error *err)
{
    struct common common = demo->invocation->common;
    char text[128];
    int code = cluster_start((int)demo->values->workers, demo->signals, &demo->cluster, err);
    if (code != EXIT_DONE)
        return code;
    common.address = demo->cluster.address;
    code = client_open(&common, &demo->client, err);
    if (code != EXIT_DONE)
        return code;
    snprintf(
        text, sizeof text,
        "the coordinator listens at %s, with a dashboard at %s; %d workers measure their cores",
        demo->cluster.address, demo->cluster.page, (int)demo->values->workers);
    say(demo, text);
    struct history_options options = waiting(demo, JOIN_TIMEOUT_S);
    code = history_follow(&options, all_joined, demo, err);
    if (code == EXIT_TIMEOUT)
        error_prefix(err, 0, "not all workers have joined");
    if (code == EXIT_DONE && demo->joining != EXIT_DONE) {
        *err = demo->joining_words;
        return demo->joining;
    }
    return code == EXIT_DONE ? show_nodes(demo, err) : code;
}

/* Beside the live line: print the table of plans once, track the memory of executors, and run the
 * mishap. */
static void watch_job(void *data, const Gimbal__Event *event)
{
    struct demo *demo = data;
    uint64_t bytes = cluster_executor_bytes();
    demo->executor_bytes = bytes > demo->executor_bytes ? bytes : demo->executor_bytes;
    if (!demo->values->undisturbed)
        mishap_watch(&demo->mishap, event);
    if (strcmp(event->kind, "plan-chosen") != 0 || demo->mishap.victim[0])
        return;
    json_t *json = json_loads(event->json, 0, NULL);
    const char *candidates = json_string_value(json_object_get(json, "candidates"));
    fputc('\n', demo->people);
    output_print_rows(candidates ? candidates : "", PLANS, true, demo->people);
    fputc('\n', demo->people);
    fflush(demo->people);
    json_decref(json);
}

static int write_job(const struct demo *demo, const char *text, struct error *err)
{
    char *path = xasprintf("%s/job.yaml", demo->cluster.folder);
    FILE *file = fopen(path, "we");
    bool written = file && fputs(text, file) >= 0;
    if (file && fclose(file) != 0)
        written = false;
    if (!written)
        error_set(err, 0, "write '%s': %m", path);
    free(path);
    return written ? EXIT_DONE : EXIT_IO;
}

static int train(struct demo *demo, const char *text, struct submission *submission,
                 struct error *err)
{
    int code = write_job(demo, text, err);
    if (code == EXIT_DONE)
        code = submission_send(&demo->client, "demo", text, NULL, false, submission, err);
    if (code != EXIT_DONE)
        return code;
    struct history_options options = waiting(demo, 0);
    follow_init(&demo->follow, submission->job, "demo", &demo->progress);
    demo->follow.event_cb = watch_job;
    demo->follow.data = demo;
    demo->mishap = (struct mishap){&demo->cluster, &demo->client, submission->job};
    return follow_run(&demo->follow, &options, err);
}

/* Fetch the plan that the coordinator chose for the job; *out is the caller's. */
static int fetch_plan(struct demo *demo, const char *job, struct plan **out, struct error *err)
{
    Gimbal__GetJobRequest request = GIMBAL__GET_JOB_REQUEST__INIT;
    ProtobufCMessage *message;
    request.job = (char *)job;
    int code = client_call(&demo->client, COORDINATOR_GET_JOB, &request.base, 0, &message, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__GetJobReply *reply = (const Gimbal__GetJobReply *)message;
    int rc = reply->plan ? plan_decode(reply->plan->json, out, err)
                         : error_set(err, -1, "%s has no plan", job);
    message_free(message);
    return rc < 0 ? EXIT_INTERNAL : EXIT_DONE;
}

static int report(struct demo *demo, const char *job, struct error *err)
{
    struct plan *plan;
    int code = fetch_plan(demo, job, &plan, err);
    if (code != EXIT_DONE)
        return code;
    const struct demoresult result = {
        .plan = plan,
        .state = &demo->follow.state,
        .sample = demo->follow.sample,
        .executor_bytes = demo->executor_bytes,
        .mishap = demo->values->undisturbed ? NULL : &demo->mishap,
    };
    demoresult_print(&result, (enum output)demo->invocation->common.output);
    plan_destroy(plan);
    return EXIT_DONE;
}

/* Stop everything and report what was left behind. Returns the exit code of the demo. */
static int clean_up(struct demo *demo, int code, struct error *err)
{
    bool keeps = demo->values->keep && demo->cluster.folder;
    char *kept = keeps ? xstrdup(demo->cluster.folder) : NULL, *left;
    client_close(&demo->client);
    cluster_stop(&demo->cluster, demo->values->keep, &left);
    if (left) {
        fprintf(stderr, "left behind:\n%s", left);
        if (code == EXIT_DONE)
            code = error_set(err, EXIT_FAILED, "something was left behind");
    } else {
        say(demo, "everything is stopped; no process, file or shared memory is left behind");
    }
    if (kept)
        fprintf(stderr, "kept: %s\n", kept);
    free(kept);
    free(left);
    return code;
}

static int run_demo(struct demo *demo, const char *text, struct error *err)
{
    struct submission submission = {0};
    progress_open(&demo->progress, stderr, demo->invocation->common.quiet);
    int code = gather(demo, err);
    if (code == EXIT_DONE)
        code = train(demo, text, &submission, err);
    if (code == EXIT_DONE)
        code = report(demo, submission.job, err);
    else if (code == EXIT_FAILED && !err->text[0])
        code = cluster_explain_end(&demo->cluster, err);
    code = clean_up(demo, code, err);
    follow_finish(&demo->follow);
    mishap_finish(&demo->mishap);
    submission_finish(&submission);
    return code;
}

static int run(const struct invocation *invocation, struct error *err)
{
    const struct demo_values *values = invocation->values;
    struct demo demo = {.invocation = invocation, .values = values, .cluster.ended = -1};
    char *text;
    unsetenv("GIMBAL_TLS"); /* the demo's own cluster is on loopback */
    demo.people = invocation->common.output >= OUTPUT_JSON ? stderr : stdout;
    if (values->workers > CLUSTER_WORKERS_MAX)
        return error_set(err, EXIT_USAGE, "--workers %lld: at most %d", (long long)values->workers,
                         CLUSTER_WORKERS_MAX);
    if (demojob_write(values->text, values->steps, (int)values->workers, &text, err) < 0)
        return EXIT_INPUT;
    demo.signals = signals_open(err);
    int code = demo.signals < 0 ? EXIT_INTERNAL : run_demo(&demo, text, err);
    if (demo.signals >= 0)
        close(demo.signals);
    free(text);
    return code;
}

const struct command command_demo = {
    .name = "demo",
    .summary = "Start a small cluster on this machine, train a model on it, clean up",
    .arguments = "",
    .flags = demo_flags,
    .values_size = sizeof(struct demo_values),
    .takes = TAKES_OUTPUT,
    .run = run,
};

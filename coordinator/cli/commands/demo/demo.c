/* demo.c - `gimbal demo`: a real cluster on this machine trains a small model on text that is here.
 * Half-way a worker is killed, and the job goes on without it. It starts from nothing and leaves
 * nothing behind. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/commands/demo/cluster.h"
#include "coordinator/cli/events.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/process.h"
#include "coordinator/cli/progress.h"
#include "coordinator/cli/tables.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/message/message.h"
#include "common/plan/plan.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOIN_TIMEOUT_S 120.0
#define PLANS 8 /* rows of the table */
#define DEMOJOB_TEXT "/usr/share/games/fortunes"

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

/* The job: a small byte-level model, of which the text, the steps and the devices vary.
 *
 * Trains for a minute on two idle cores and learns words and the look of a quotation. There is only
 * one stage, so that what one worker holds is likely to be held by another one, too. */
static const char format[] = "apiVersion: gimbal/v1\n"
                             "name: demo\n"
                             "model: {family: gpt, layers: 4, hidden: 128, heads: 4, seq: 64}\n"
                             "data: {text: [%s]}\n"
                             "train: {steps: %lld, global_batch: 32, lr: 2.0e-3, warmup: %lld}\n"
                             "devices: {min: %d, max: %d}\n"
                             "plan: {pin: {pp: 1}}\n"
                             "eval: {every: 100, holdout: 0.05, sample: 400}\n";

static int demojob_is_text(const struct dirent *entry)
{
    return entry->d_type == DT_REG && !strchr(entry->d_name, '.');
}

/* List the files of fortunes one by one. Next to each are an index, .dat, and a link to the same
 * text, .u8; the link would put the held-out text among what is learned. */
static int demojob_list_fortunes(char **out, struct error *err)
{
    struct dirent **entries;
    size_t size;
    int count = scandir(DEMOJOB_TEXT, &entries, demojob_is_text, alphasort);
    if (count <= 0)
        return error_set(err, -ENOENT,
                         "there is no text to train on in " DEMOJOB_TEXT
                         ": run 'apt-get install fortunes', or name a file or folder of text with "
                         "--text");
    FILE *list = open_memstream(out, &size);
    for (int i = 0; i < count; i++) {
        fprintf(list, "%s'" DEMOJOB_TEXT "/%s'", i ? ", " : "", entries[i]->d_name);
        free(entries[i]);
    }
    fclose(list);
    free(entries);
    return 0;
}

static int demojob_list_given(const char *path, char **out, struct error *err)
{
    char whole[PATH_MAX];
    if (!realpath(path, whole)) {
        int rc = -errno;
        return error_set(err, rc, "--text '%s': %s", path, strerror(-rc));
    }
    if (strpbrk(whole, "'\n"))
        return error_set(err, -EINVAL, "--text '%s': the path may not contain quotes", path);
    *out = xasprintf("'%s'", whole);
    return 0;
}

/* The text of a job file, owned by the caller, for a file or directory of text (NULL:
 * DEMOJOB_TEXT), for this many steps, and for this many devices or one less. -ENOENT names the
 * package with the text. */
static int demojob_write(const char *text_path, int64_t steps, int devices, char **out,
                         struct error *err)
{
    char *list = NULL;
    int rc =
        text_path ? demojob_list_given(text_path, &list, err) : demojob_list_fortunes(&list, err);
    if (rc < 0)
        return rc;
    long long warmup = steps < 500 ? steps / 10 : 50;
    *out =
        xasprintf(format, list, (long long)steps, warmup, devices > 1 ? devices - 1 : 1, devices);
    free(list);
    return 0;
}

/* Initialize to zero; the first three members are lent by the caller. */
struct mishap {
    struct demo_cluster *cluster;
    struct client *client;
    const char *job;
    char victim[32];                            /* its node; "": nobody was killed (yet) */
    uint64_t killed_ms, noticed_ms, went_on_ms; /* milliseconds since 1970; 0: not (yet) */
    json_t *replan; /* from the event that the job went on; NULL: none */
};

/* Find the node of the job's last rank; false if that is unknown or it has none. */
static bool mishap_find_victim(const struct mishap *mishap, char *node, size_t size)
{
    Gimbal__GetJobReply *reply;
    struct error ignored;
    if (client_get_job(mishap->client, mishap->job, &reply, &ignored) != EXIT_DONE)
        return false;
    const Gimbal__JobStatus *status = reply->status;
    bool found = status && status->n_devices > 1;
    if (found) {
        const char *device = status->devices[status->n_devices - 1];
        snprintf(node, size, "%.*s", (int)strcspn(device, "/"), device);
    }
    message_free(&reply->base);
    return found;
}

static void mishap_strike(struct mishap *mishap)
{
    char node[sizeof mishap->victim];
    if (!mishap_find_victim(mishap, node, sizeof node) || !demo_cluster_kill(mishap->cluster, node))
        return;
    mishap->killed_ms = clock_unix_ms();
    memcpy(mishap->victim, node, sizeof node);
}

static bool mishap_is_half_way(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    json_int_t step = json_integer_value(json_object_get(json, "step"));
    json_int_t steps = json_integer_value(json_object_get(json, "steps"));
    json_decref(json);
    return step * 2 >= steps && step < steps;
}

/* To be called with each event of the job. Once half of the steps are done, kills the worker of its
 * last rank. */
static void mishap_watch(struct mishap *mishap, const Gimbal__Event *event)
{
    if (!mishap->victim[0]) {
        if (strcmp(event->kind, "step") == 0 && mishap_is_half_way(event->json))
            mishap_strike(mishap);
    } else if (strcmp(event->kind, "job-replanning") == 0 && !mishap->noticed_ms) {
        mishap->noticed_ms = event->unix_ms;
    } else if (strcmp(event->kind, "job-replanned") == 0 && !mishap->replan) {
        mishap->replan = json_loads(event->json, 0, NULL);
        mishap->went_on_ms = event->unix_ms;
    }
}

static double mishap_since_kill_ms(const struct mishap *mishap, uint64_t unix_ms)
{
    return unix_ms > mishap->killed_ms ? (double)(unix_ms - mishap->killed_ms) : 0;
}

static double mishap_of_replan_ms(const struct mishap *mishap, const char *phase)
{
    return 1e3 * json_real_value(json_object_get(mishap->replan, phase));
}

static const char *mishap_side(const struct mishap *mishap, const char *which)
{
    const json_t *of = json_object_get(mishap->replan, which);
    const char *division = json_string_value(json_object_get(of, "division"));
    return division ? division : "?";
}

/* The consequences, as lines for people and as JSON; NULL if nobody was killed. */
static void mishap_print(const struct mishap *mishap, FILE *out)
{
    if (!mishap->victim[0]) {
        fprintf(out, "mishap         none: training ended before a worker could be killed\n");
        return;
    }
    if (!mishap->replan) {
        fprintf(out, "mishap         %s was killed, and no step followed\n", mishap->victim);
        return;
    }
    fprintf(out,
            "mishap         %s was killed halfway: noticed after %.0f ms, the next step finished "
            "after %.0f ms, %lld steps lost\n"
            "               %s, then %s: quiesce %.0f ms, plan %.0f ms, start %.0f ms, of which "
            "move %.0f ms, first step %.0f ms\n",
            mishap->victim, mishap_since_kill_ms(mishap, mishap->noticed_ms),
            mishap_since_kill_ms(mishap, mishap->went_on_ms),
            (long long)json_integer_value(json_object_get(mishap->replan, "steps_lost")),
            mishap_side(mishap, "before"), mishap_side(mishap, "after"),
            mishap_of_replan_ms(mishap, "quiesce_s"), mishap_of_replan_ms(mishap, "plan_s"),
            mishap_of_replan_ms(mishap, "start_s"), mishap_of_replan_ms(mishap, "move_s"),
            mishap_of_replan_ms(mishap, "step_s"));
}

static json_t *mishap_json(const struct mishap *mishap)
{
    if (!mishap->victim[0])
        return NULL;
    return json_pack("{s:s, s:f, s:f, s:O?}", "node", mishap->victim, "noticed_s",
                     1e-3 * mishap_since_kill_ms(mishap, mishap->noticed_ms), "next_step_s",
                     1e-3 * mishap_since_kill_ms(mishap, mishap->went_on_ms), "replan",
                     mishap->replan);
}

static void mishap_finish(struct mishap *mishap)
{
    json_decref(mishap->replan);
    mishap->replan = NULL;
}

/* Everything is lent. */
struct demoresult {
    const struct plan *plan;
    const struct progress_state *state; /* the last */
    const char *sample;                 /* text from the trained model; NULL: none */
    uint64_t executor_bytes;            /* highest resident memory of any executor */
    const struct mishap *mishap;        /* NULL: none was intended */
};

static json_t *demoresult_to_json(const struct demoresult *result)
{
    const struct progress_state *state = result->state;
    const struct plan *plan = result->plan;
    json_t *predicted = json_pack("{s:f, s:I}", "step_time_s", plan->predicted.step_time_s,
                                  "memory_bytes_max", (json_int_t)plan->predicted.memory_bytes_max);
    json_t *measured =
        json_pack("{s:f, s:I, s:f}", "step_time_s", state->step_time_s, "resident_bytes_max",
                  (json_int_t)result->executor_bytes, "tokens_per_s", state->tokens_per_s);
    json_t *heldout = resource_number(state->heldout_loss);
    json_t *mishap = result->mishap ? mishap_json(result->mishap) : NULL;
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:s?, s:o?}", "plan", plan->id, "steps",
                     (json_int_t)state->step, "loss", resource_number(state->loss), "heldout_loss",
                     heldout, "predicted", predicted, "measured", measured, "sample",
                     result->sample, "mishap", mishap);
}

static void demoresult_print_lines(const struct demoresult *result)
{
    const struct progress_state *state = result->state;
    const struct plan *plan = result->plan;
    char predicted[32], measured[32];
    if (result->sample)
        printf("\nwhat the model writes:\n\n%s\n\n", result->sample);
    printf("loss           %.3f after %llu steps", state->loss, (unsigned long long)state->step);
    if (!isnan(state->heldout_loss))
        printf(", %.3f on text it has not seen", state->heldout_loss);
    printf("\nstep time      %s predicted, %s measured\n",
           units_print_seconds(predicted, sizeof predicted, plan->predicted.step_time_s),
           units_print_seconds(measured, sizeof measured, state->step_time_s));
    printf("memory         %s predicted and reserved, %s resident with the program itself\n",
           units_print_bytes(predicted, sizeof predicted, (double)plan->predicted.memory_bytes_max),
           units_print_bytes(measured, sizeof measured, (double)result->executor_bytes));
    if (result->mishap)
        mishap_print(result->mishap, stdout);
    fflush(stdout);
}

/* As lines for people, or as an object. */
static void demoresult_print(const struct demoresult *result, enum output output)
{
    if (output >= OUTPUT_JSON)
        output_print_object(output, resource_object("DemoResult", demoresult_to_json(result)),
                            stdout);
    else
        demoresult_print_lines(result);
}

struct demo {
    const struct invocation *invocation;
    const struct demo_values *values;
    FILE *people; /* for tables: stdout, or stderr if stdout is for JSON */
    struct demo_cluster cluster;
    struct client client;
    struct progress progress;
    struct follow follow;
    struct mishap mishap;
    int signals;
    uint64_t executor_bytes;
    int joining; /* how the last look at the nodes went, an enum exit_code */
    struct error joining_words;
};

static void demo_say(const struct demo *demo, const char *text)
{
    if (!demo->invocation->common.quiet)
        fprintf(stderr, "%s\n", text);
}

static struct history_options demo_waiting(struct demo *demo, double timeout_s)
{
    return (struct history_options){.client = &demo->client,
                                    .signals = demo->signals,
                                    .end_fd = demo->cluster.ended,
                                    .timeout_s = timeout_s};
}

/* At least as many workers are alive as were started. */
static bool demo_are_alive(const struct demo *demo, const Gimbal__ListNodesReply *list)
{
    int64_t count = 0;
    for (size_t i = 0; i < list->n_nodes; i++)
        count += list->nodes[i]->state == GIMBAL__NODE_STATUS__STATE__ALIVE;
    return count >= demo->values->workers;
}

/* An event about a node: perhaps the last one has joined. */
static bool demo_all_joined(void *data, const Gimbal__Event *event)
{
    struct demo *demo = data;
    Gimbal__ListNodesReply *list;
    if (strncmp(event->kind, "node-", 5) != 0)
        return false;
    progress_note(&demo->progress, "%s", event->text);
    demo->joining = client_list_nodes(&demo->client, &list, &demo->joining_words);
    if (demo->joining != EXIT_DONE)
        return true;
    bool alive = demo_are_alive(demo, list);
    message_free(&list->base);
    return alive;
}

static int demo_show_nodes(struct demo *demo, struct error *err)
{
    Gimbal__ListNodesReply *list;
    int code = client_list_nodes(&demo->client, &list, err);
    if (code != EXIT_DONE)
        return code;
    struct common table = {.output = OUTPUT_TABLE};
    fputc('\n', demo->people);
    nodetable_print(&table, list->nodes, list->n_nodes, demo->people);
    fputc('\n', demo->people);
    message_free(&list->base);
    return EXIT_DONE;
}

static int demo_gather(struct demo *demo, struct error *err)
{
    struct common common = demo->invocation->common;
    char text[128];
    int code = demo_cluster_start((int)demo->values->workers, demo->signals, &demo->cluster, err);
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
    demo_say(demo, text);
    struct history_options options = demo_waiting(demo, JOIN_TIMEOUT_S);
    code = history_follow(&options, demo_all_joined, demo, err);
    if (code == EXIT_TIMEOUT)
        error_prefix(err, 0, "not all workers have joined");
    if (code == EXIT_DONE && demo->joining != EXIT_DONE) {
        *err = demo->joining_words;
        return demo->joining;
    }
    return code == EXIT_DONE ? demo_show_nodes(demo, err) : code;
}

/* Beside the live line: print the table of plans once, track the memory of executors, and run the
 * mishap. */
static void demo_watch_job(void *data, const Gimbal__Event *event)
{
    struct demo *demo = data;
    uint64_t bytes = demo_cluster_executor_bytes();
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

static int demo_write_job(const struct demo *demo, const char *text, struct error *err)
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

static int demo_train(struct demo *demo, const char *text, struct submission *submission,
                      struct error *err)
{
    int code = demo_write_job(demo, text, err);
    if (code == EXIT_DONE)
        code = submission_send(&demo->client, &(struct submitting){.name = "demo", .yaml = text},
                               submission, err);
    if (code != EXIT_DONE)
        return code;
    struct history_options options = demo_waiting(demo, 0);
    follow_init(&demo->follow, submission->job, "demo", &demo->progress);
    demo->follow.event_cb = demo_watch_job;
    demo->follow.data = demo;
    demo->mishap = (struct mishap){&demo->cluster, &demo->client, submission->job};
    return follow_run(&demo->follow, &options, err);
}

/* Fetch the plan that the coordinator chose for the job; *out is the caller's. */
static int demo_fetch_plan(struct demo *demo, const char *job, struct plan **out, struct error *err)
{
    Gimbal__GetJobReply *reply;
    int code = client_get_job(&demo->client, job, &reply, err);
    if (code != EXIT_DONE)
        return code;
    int rc = reply->plan ? plan_decode(reply->plan->json, out, err)
                         : error_set(err, -1, "%s has no plan", job);
    message_free(&reply->base);
    return rc < 0 ? EXIT_INTERNAL : EXIT_DONE;
}

static int demo_report(struct demo *demo, const char *job, struct error *err)
{
    struct plan *plan;
    int code = demo_fetch_plan(demo, job, &plan, err);
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
static int demo_clean_up(struct demo *demo, int code, struct error *err)
{
    bool keeps = demo->values->keep && demo->cluster.folder;
    char *kept = keeps ? xstrdup(demo->cluster.folder) : NULL, *left;
    client_close(&demo->client);
    demo_cluster_stop(&demo->cluster, demo->values->keep, &left);
    if (left) {
        fprintf(stderr, "left behind:\n%s", left);
        if (code == EXIT_DONE)
            code = error_set(err, EXIT_FAILED, "something was left behind");
    } else {
        demo_say(demo, "everything is stopped; no process, file or shared memory is left behind");
    }
    if (kept)
        fprintf(stderr, "kept: %s\n", kept);
    free(kept);
    free(left);
    return code;
}

static int demo_run_all(struct demo *demo, const char *text, struct error *err)
{
    struct submission submission = {0};
    progress_open(&demo->progress, stderr, demo->invocation->common.quiet);
    int code = demo_gather(demo, err);
    if (code == EXIT_DONE)
        code = demo_train(demo, text, &submission, err);
    if (code == EXIT_DONE)
        code = demo_report(demo, submission.job, err);
    else if (code == EXIT_FAILED && !err->text[0])
        code = demo_cluster_explain_end(&demo->cluster, err);
    code = demo_clean_up(demo, code, err);
    follow_finish(&demo->follow);
    mishap_finish(&demo->mishap);
    submission_finish(&submission);
    return code;
}

static int demo_run(const struct invocation *invocation, struct error *err)
{
    const struct demo_values *values = invocation->values;
    struct demo demo = {.invocation = invocation, .values = values, .cluster.ended = -1};
    char *text;
    unsetenv("GIMBAL_TLS"); /* the demo's own cluster is on loopback */
    demo.people = invocation->common.output >= OUTPUT_JSON ? stderr : stdout;
    if (values->workers > DEMO_WORKERS_MAX)
        return error_set(err, EXIT_USAGE, "--workers %lld: at most %d", (long long)values->workers,
                         DEMO_WORKERS_MAX);
    if (demojob_write(values->text, values->steps, (int)values->workers, &text, err) < 0)
        return EXIT_INPUT;
    demo.signals = signals_open(err);
    int code = demo.signals < 0 ? EXIT_INTERNAL : demo_run_all(&demo, text, err);
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
    .run = demo_run,
};

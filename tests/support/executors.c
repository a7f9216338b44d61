/* executors.c - starting executors and listening to them. */
#include "tests/support/executors.h"

#include "common/message/message.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_to(const char *path, const char *mode, const char *text)
{
    FILE *file = fopen(path, mode);
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

void executor_job_make(struct executor_job *job, int steps)
{
    const struct job_model model = {
        .family = "gpt", .layers = 2, .hidden = 32, .heads = 4, .seq = 32, .vocab = 256};
    executor_job_make_of(job, steps, &model);
}

void executor_job_make_of(struct executor_job *job, int steps, const struct job_model *model)
{
    char text[1024];
    job->model = *model;
    strcpy(job->directory, "/tmp/gimbal-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(job->directory));
    snprintf(job->job, sizeof job->job, "%s/job.yaml", job->directory);
    snprintf(job->plan, sizeof job->plan, "%s/plan.json", job->directory);
    snprintf(job->text, sizeof job->text, "%s/text", job->directory);
    FILE *file = fopen(job->text, "w");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 2000; i++)
        fprintf(file, "%d bottles of beer on the wall.\n", i % 100);
    fclose(file);
    snprintf(text, sizeof text,
             "apiVersion: gimbal/v1\nname: small\n"
             "model: {family: %s, layers: %d, hidden: %d, heads: %d, seq: %d}\n"
             "data: {text: [%s]}\n"
             "train: {steps: %d, global_batch: 8, lr: 3.0e-3}\n"
             "eval: {every: 20, holdout: 0.05, sample: 40}\n",
             model->family, (int)model->layers, (int)model->hidden, (int)model->heads,
             (int)model->seq, job->text, steps);
    write_to(job->job, "we", text);
}

void executor_job_append(const struct executor_job *job, const char *lines)
{
    write_to(job->job, "ae", lines);
}

struct graph *executor_job_graph(const struct executor_job *job)
{
    struct graph *graph;
    ck_assert_int_eq(model_build(&job->model, ELEMENT_F32, &graph, NULL), 0);
    return graph;
}

void executor_job_plan(const struct executor_job *job, const struct plan *plan)
{
    struct graph *graph = executor_job_graph(job);
    char *text = plan_encode(plan, graph);
    write_to(job->plan, "we", text);
    free(text);
    graph_destroy(graph);
}

void executor_job_clean(const struct executor_job *job)
{
    unlink(job->job);
    unlink(job->plan);
    unlink(job->text);
    rmdir(job->directory);
}

void executor_start(struct executor *executor, const char *path, const char *const *arguments)
{
    const char *argv[16] = {path, "--channel", "3"};
    int parent, child, count = 3;
    for (; *arguments; arguments++)
        argv[count++] = *arguments;
    argv[count] = NULL;
    ck_assert_int_eq(channel_pair(&parent, &child, NULL), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (child == 3)
        fcntl(child, F_SETFD, 0);
    else
        posix_spawn_file_actions_adddup2(&actions, child, 3);
    ck_assert_int_eq(posix_spawn(&executor->pid, path, &actions, NULL, (char **)argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(child);
    channel_open(&executor->channel, parent);
}

Gimbal__ExecutorEvent *executor_next(struct executor *executor)
{
    ProtobufCMessage *message;
    int rc = channel_read(&executor->channel, &gimbal__executor_event__descriptor,
                          EXECUTOR_DEADLINE_MS, &message, NULL);
    ck_assert_msg(rc == 1 || rc == -EPIPE, "no event in time");
    return rc == 1 ? (Gimbal__ExecutorEvent *)message : NULL;
}

int executor_finish(struct executor *executor)
{
    int status;
    channel_close(&executor->channel);
    ck_assert_int_eq(waitpid(executor->pid, &status, 0), executor->pid);
    return status;
}

static void see_telemetry(struct executor_seen *seen, const Gimbal__TelemetryRecord *record)
{
    if (record->record_case == GIMBAL__TELEMETRY_RECORD__RECORD_STEP) {
        if (record->step->step <= (uint64_t)seen->steps) { /* told by another rank, too */
            ck_assert_double_eq(record->step->loss, seen->loss[record->step->step - 1]);
            return;
        }
        ck_assert_int_lt(seen->steps, (int)(sizeof seen->loss / sizeof *seen->loss));
        ck_assert_uint_eq(record->step->step, (uint64_t)seen->steps + 1);
        seen->loss[seen->steps++] = record->step->loss;
    } else if (record->record_case == GIMBAL__TELEMETRY_RECORD__RECORD_EVALUATION) {
        seen->evaluations++;
        if (record->evaluation->text.len)
            seen->sample = record->evaluation->text.len;
        else
            seen->evaluation = record->evaluation->loss;
    }
}

void executor_see(struct executor_seen *seen, const Gimbal__ExecutorEvent *event)
{
    seen->ready += event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_READY;
    if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_TELEMETRY)
        see_telemetry(seen, event->telemetry);
    if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_STOPPED) {
        seen->stopped++;
        seen->done += event->stopped->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DONE;
        snprintf(seen->reason, sizeof seen->reason, "%s", event->stopped->reason);
    }
}

void executor_see_all(struct executor *executor, struct executor_seen *seen)
{
    Gimbal__ExecutorEvent *event;
    while ((event = executor_next(executor)) != NULL) {
        executor_see(seen, event);
        message_free(&event->base);
    }
}

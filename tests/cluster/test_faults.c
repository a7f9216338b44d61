/* test_faults.c - one cluster of real processes, and everything that people do wrong to it: each
 * fault ends in its exit code and a sentence that names what is wrong, and the cluster goes on. */
#include "common/base/memory.h"
#include "common/message/message.h"
#include "common/rpc/protocol.h"
#include "tests/cluster/command.h"
#include "tests/cluster/real_cluster.h"
#include "tests/cluster/stranger.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX 6
#define ENDLESS 1000000000
#define NODES 2

static struct cluster cluster;
static struct command workers[NODES], command;
static const char *const names[NODES] = {"node-a", "node-b"};
static uint16_t held_port; /* of the coordinator, beside that of its address */
static char folder[64], job_path[96], text_path[96];

struct fault {
    const char *name;
    int (*happen)(const struct fault *); /* leaves the words in command.err; the exit code */
    const char *model, *text, *more;     /* of the job; NULL: what is right */
    const char *elastic;                 /* NULL: executors stay when an epoch breaks */
    int code;
    const char *words[WORDS_MAX];
};

#define GIMBAL_RUN(...) gimbal_run((const char *const[]){GIMBAL, __VA_ARGS__, NULL})

static int gimbal_run(const char *const *words)
{
    command_start(&command, words);
    return command_finish(&command);
}

static void write_job(const struct fault *fault, int steps)
{
    FILE *file = fopen(job_path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "apiVersion: gimbal/v1\n"
            "name: small\n"
            "model: {%s}\n"
            "data: {text: ['%s']}\n"
            "train: {steps: %d, global_batch: 4, lr: 0.001}\n"
            "%s\n"
            "%s",
            fault->model ? fault->model : "family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16",
            fault->text ? fault->text : text_path, steps,
            fault->more ? fault->more : "devices: {min: 2}\nplan: {pin: {dp: 2}}",
            fault->elastic ? fault->elastic : "");
    ck_assert_int_eq(fclose(file), 0);
}

static int submit_and_wait(const struct fault *fault)
{
    write_job(fault, 3);
    return GIMBAL_RUN("submit", "-f", job_path, "--wait");
}

/* A job that makes steps until it is stopped. */
static void submit_and_await_step(const struct fault *fault)
{
    write_job(fault, ENDLESS);
    command_start(&command, (const char *const[]){GIMBAL, "submit", "-f", job_path, "--wait", "-o",
                                                  "jsonl", NULL});
    ck_assert_msg(command_await(&command, "\"event\":\"step\""), "no step: %s",
                  command_last(&command));
}

static void start_worker(int index)
{
    char share[8], state[80];
    snprintf(share, sizeof share, "%d/%d", index, NODES);
    snprintf(state, sizeof state, "%s/state", cluster.directory);
    command_start(&workers[index],
                  (const char *const[]){WORKER, "--name", names[index], "--coordinator",
                                        cluster.address, "--devices", "1", "--share", share,
                                        "--memory", "256MiB", "--executor", EXECUTOR, "--state",
                                        state, NULL});
}

/* Both nodes alive and without a job, as the user sees them. */
static bool all_idle(void)
{
    bool idle = true;
    size_t i, j;
    json_t *node, *job;
    ck_assert_msg(GIMBAL_RUN("nodes", "-o", "json") == 0, "%s", command.err);
    json_t *list = json_loads(command.out, 0, NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(list, "nodes")), NODES);
    json_array_foreach(json_object_get(list, "nodes"), i, node)
    {
        idle = idle && strcmp(json_string_value(json_object_get(node, "state")), "ALIVE") == 0;
        ck_assert_uint_eq(json_array_size(json_object_get(node, "device_jobs")), 1);
        json_array_foreach(json_object_get(node, "device_jobs"), j, job) idle =
            idle && strcmp(json_string_value(job), "") == 0;
    }
    json_decref(list);
    return idle;
}

/* Events come until it is so: a node that joins, a job that ends. */
static void await_idle(void)
{
    static struct command events;
    command_start(&events, (const char *const[]){GIMBAL, "events", "-w", "-o", "jsonl", NULL});
    while (!all_idle()) {
        events.out_size = 0;
        events.out[0] = '\0';
        ck_assert_msg(command_await(&events, "\n"), "the events end");
    }
    kill(events.pid, SIGINT);
    ck_assert_int_eq(command_finish(&events), 130);
}

static int plan_by_magic(const struct fault *fault)
{
    write_job(fault, 3);
    return GIMBAL_RUN("plan", "--local", "2", "--search", "magic", "-f", job_path);
}

static int use_taken_port(const struct fault *fault)
{
    (void)fault;
    return coordinator_run((const char *const[]){"--address", cluster.address, NULL}, command.err,
                           sizeof command.err);
}

static int kill_executor(const struct fault *fault)
{
    submit_and_await_step(fault);
    pid_t executor = command_child(workers[1].pid);
    ck_assert_int_gt(executor, 0);
    ck_assert_int_eq(kill(executor, SIGKILL), 0);
    return command_finish(&command);
}

static int kill_worker(const struct fault *fault)
{
    submit_and_await_step(fault);
    pid_t executor = command_child(workers[1].pid);
    kill(workers[1].pid, SIGKILL);
    int code = command_finish(&command);
    command_await_gone(executor); /* it dies with its worker */
    static char words[sizeof command.err];
    memcpy(words, command.err, sizeof words);
    ck_assert_int_eq(command_finish(&workers[1]), 128 + SIGKILL);
    start_worker(1);
    await_idle();
    memcpy(command.err, words, sizeof words);
    return code;
}

/* Words that come after those that were waited for before. */
static void await_next(struct command *of, const char *words)
{
    ck_assert_msg(command_await(of, words), "no '%s' in %s", words, of->out);
    const char *rest = strstr(of->out, words) + strlen(words);
    of->out_size = strlen(rest);
    memmove(of->out, rest, of->out_size + 1);
}

/* Of the only job that `gimbal jobs` shows. */
static void find_job(char *job, size_t size, const char *state)
{
    ck_assert_int_eq(GIMBAL_RUN("jobs", "-o", "json"), 0);
    json_t *list = json_loads(command.out, 0, NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(list, "jobs")), 1);
    const json_t *only = json_array_get(json_object_get(list, "jobs"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(only, "state")), state);
    snprintf(job, size, "%s", json_string_value(json_object_get(only, "job")));
    json_decref(list);
}

/* One that has left its epoch is let go once its job has ended, and may still be going. */
static void await_no_executor(int node)
{
    pid_t executor = command_child(workers[node].pid);
    if (executor)
        command_await_gone(executor);
}

/* The job that is being waited for is no more wanted. */
static int give_up(struct command *waiting)
{
    char job[32];
    find_job(job, sizeof job, "RUNNING");
    ck_assert_int_eq(GIMBAL_RUN("cancel", job, "--reason", "seen enough"), 0);
    command = *waiting;
    return command_finish(&command);
}

/* Step by step with the first epoch's end between: the events of a job that begins again. */
static int begin_again(const struct fault *fault, const char *cause)
{
    static struct command waiting;
    char words[160];
    (void)fault;
    snprintf(words, sizeof words, "PENDING: restart 1 of 20, from step 0: %s", cause);
    await_next(&command, words);
    await_next(&command, "\"event\":\"job-running\"");
    waiting = command;
    return give_up(&waiting);
}

static int restart_after_executor(const struct fault *fault)
{
    submit_and_await_step(fault);
    ck_assert_int_eq(kill(command_child(workers[1].pid), SIGKILL), 0);
    return begin_again(fault, "rank 1 on node-b/0 failed: the executor was killed by signal 9");
}

static int restart_after_worker(const struct fault *fault)
{
    static struct command following;
    submit_and_await_step(fault);
    kill(workers[1].pid, SIGKILL);
    following = command;
    ck_assert_int_eq(command_finish(&workers[1]), 128 + SIGKILL);
    start_worker(1);
    command = following;
    return begin_again(fault, "worker node-b was lost");
}

/* The status is the code, the words are the answer's. */
static int send_frame(nng_msg *frame, uint16_t port)
{
    Gimbal__Envelope *answer;
    ck_assert_int_eq(stranger_ask(cluster.address, port, frame, &answer), 0);
    int code = (int)answer->status;
    snprintf(command.err, sizeof command.err, "%s", answer->status_text);
    message_free(&answer->base);
    return code;
}

static int send_garbage(const struct fault *fault)
{
    (void)fault;
    ck_assert_int_eq(send_frame(stranger_frame("\xffgarbage", 8), held_port), RPC_INVALID_ARGUMENT);
    return send_frame(stranger_frame("\xffgarbage", 8), 0);
}

static int send_too_much(const struct fault *fault)
{
    (void)fault;
    const uint16_t ports[] = {0, held_port};
    for (int i = 0; i < 2; i++) {
        Gimbal__Envelope *answer;
        nng_msg *frame = stranger_frame("", (size_t)64 << 20);
        int rc = stranger_ask(cluster.address, ports[i], frame, &answer);
        snprintf(command.err, sizeof command.err, "%s", nng_strerror(rc));
        ck_assert_int_eq(rc, NNG_ECONNRESET);
    }
    return NNG_ECONNRESET;
}

static int send_next_major(const struct fault *fault)
{
    (void)fault;
    ck_assert_int_eq(send_frame(stranger_hello_of_next_major(), held_port),
                     RPC_FAILED_PRECONDITION);
    return send_frame(stranger_hello_of_next_major(), 0);
}

static int cancel_running(const struct fault *fault)
{
    static struct command waiting;
    char job[32];
    submit_and_await_step(fault);
    waiting = command;
    find_job(job, sizeof job, "RUNNING");
    pid_t executors[NODES] = {command_child(workers[0].pid), command_child(workers[1].pid)};
    ck_assert_int_eq(GIMBAL_RUN("cancel", job, "--reason", "wrong text"), 0);
    command = waiting;
    int code = command_finish(&command);
    for (int i = 0; i < NODES; i++)
        command_await_gone(executors[i]);
    return code;
}

static void learn_held_port(void)
{
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    struct party *user = cluster_user(&cluster);
    Gimbal__HelloReply *reply = party_call(user, COORDINATOR_HELLO, &hello);
    held_port = (uint16_t)reply->held_port;
    message_free(&reply->base);
    party_leave(&cluster, user);
}

/* While it is paused its executors wait, whatever becomes of the coordinator; then it goes on
 * from where it was. */
static int pause_running(const struct fault *fault)
{
    static struct command waiting, lines;
    char job[32];
    submit_and_await_step(fault);
    waiting = command;
    find_job(job, sizeof job, "RUNNING");
    command_start(&lines, (const char *const[]){GIMBAL, "logs", job, "-f", NULL});
    ck_assert_msg(command_await(&lines, "\n"), "no line: %s", command_last(&lines));
    pid_t executor = command_child(workers[1].pid);
    ck_assert_int_eq(GIMBAL_RUN("pause", job, "--reason", "a demo"), 0);
    await_next(&waiting, "\"event\":\"job-paused\"");
    cluster_kill(&cluster);
    cluster_restart(&cluster, NULL);
    learn_held_port();
    find_job(job, sizeof job, "PAUSED");
    ck_assert_msg(strstr(command.out, "a demo") != NULL, "%s", command.out);
    ck_assert_int_eq(GIMBAL_RUN("resume", job), 0);
    await_next(&waiting, "\"event\":\"job-running\"");
    await_next(&waiting, "\"event\":\"step\"");
    ck_assert_int_eq(command_child(workers[1].pid), executor);
    int code = give_up(&waiting);
    ck_assert_msg(command_finish(&lines) == 0, "%s", command_last(&lines));
    ck_assert_str_eq(lines.err, "lines are missing here: the coordinator no longer has them\n");
    return code;
}

static const struct fault faults[] = {
    {.name = "unknown model family",
     .happen = submit_and_wait,
     .model = "family: lstm, layers: 2, hidden: 32, heads: 4, seq: 16",
     .code = 65,
     .words = {"job.yaml:3:", "model.family", "'lstm'", "known: gpt"}},
    {.name = "heads that do not divide hidden",
     .happen = submit_and_wait,
     .model = "family: gpt, layers: 2, hidden: 32, heads: 5, seq: 16",
     .code = 65,
     .words = {"job.yaml:3:", "model.heads: 5", "model.hidden 32"}},
    {.name = "unknown search",
     .happen = submit_and_wait,
     .more = "plan: {search: magic}",
     .code = 65,
     .words = {"job.yaml:6:", "plan.search: 'magic'", "known: ", "uniform"}},
    {.name = "an unknown search as a flag",
     .happen = plan_by_magic,
     .code = 65,
     .words = {"plan.search 'magic'", "known: ", "uniform"}},
    {.name = "a number out of its range",
     .happen = submit_and_wait,
     .more = "eval: {holdout: 0.95}",
     .code = 65,
     .words = {"job.yaml:6:", "eval.holdout", "0.95", "0.9"}},
    {.name = "unreadable data",
     .happen = submit_and_wait,
     .text = "/proc/nonexistent/corpus.txt",
     .code = 1,
     .words = {"FAILED: rank ", " on node-", "'/proc/nonexistent/corpus.txt'", "No such file"}},
    {.name = "too little memory",
     .happen = submit_and_wait,
     .model = "family: gpt, layers: 2, hidden: 256, heads: 4, seq: 16",
     .more = "devices: {min: 2}\nplan: {memory: 1MiB}",
     .code = 3,
     .words = {"no plan fits", "pp1\u00b7", "needs 1", "1.0 MiB may be used (plan.memory)",
               "plan.memory of at least 1"}},
    {.name = "a port in use",
     .happen = use_taken_port,
     .code = 74,
     .words = {"listen at tcp://127.0.0.1:", cluster.address, "the port is in use"}},
    {.name = "a killed executor",
     .happen = kill_executor,
     .elastic = "elastic: {max_restarts: 0, replan: false}\n",
     .code = 1,
     .words = {"FAILED", "rank ", "on node-b/0", "killed by signal 9"}},
    {.name = "a killed worker",
     .happen = kill_worker,
     .elastic = "elastic: {max_restarts: 0, replan: false}\n",
     .code = 1,
     .words = {"FAILED", "worker node-b was lost"}},
    {.name = "a killed executor of a job that may begin again",
     .happen = restart_after_executor,
     .elastic = "elastic: {replan: false}\n",
     .code = 1,
     .words = {"CANCELLED", "seen enough"}},
    {.name = "a killed worker of a job that may begin again",
     .happen = restart_after_worker,
     .elastic = "elastic: {replan: false}\n",
     .code = 1,
     .words = {"CANCELLED", "seen enough"}},
    {.name = "a paused job, and a killed coordinator",
     .happen = pause_running,
     .more = "devices: {min: 2}\nplan: {pin: {pp: 2}}\n", /* whose ranks say what they copy */
     .code = 1,
     .words = {"CANCELLED", "seen enough"}},
    {.name = "a garbage frame",
     .happen = send_garbage,
     .code = RPC_INVALID_ARGUMENT,
     .words = {"no such message"}},
    {.name = "an oversized frame",
     .happen = send_too_much,
     .code = NNG_ECONNRESET,
     .words = {"reset"}},
    {.name = "another protocol major",
     .happen = send_next_major,
     .code = RPC_FAILED_PRECONDITION,
     .words = {"protocol 2.0 meets protocol 1.0"}},
    {.name = "a cancelled job",
     .happen = cancel_running,
     .code = 1,
     .words = {"CANCELLED", "cancelled by", "wrong text"}},
};
#define FAULTS (sizeof faults / sizeof *faults)

static void check_words(const struct fault *fault)
{
    for (size_t i = 0; i < WORDS_MAX && fault->words[i]; i++)
        ck_assert_msg(strstr(command.err, fault->words[i]) != NULL, "%s: no '%s' in: %s",
                      fault->name, fault->words[i], command.err);
}

static int count_shared_memory(void)
{
    int count = 0;
    DIR *directory = opendir("/dev/shm");
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        count += strstr(entry->d_name, "gimbal") != NULL;
    if (directory)
        closedir(directory);
    return count;
}

static void set_up(void)
{
    strcpy(folder, "/tmp/gimbal-faults-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(job_path, sizeof job_path, "%s/job.yaml", folder);
    snprintf(text_path, sizeof text_path, "%s/text", folder);
    command_write_text(folder);
    unsetenv("GIMBAL_ADDRESS");
    cluster_start(&cluster, NULL);
    learn_held_port();
    for (int i = 0; i < NODES; i++)
        start_worker(i);
    setenv("GIMBAL_ADDRESS", cluster.address, 1);
}

/* Whoever is stopped by SIGTERM ends with 0 and leaves nothing. */
static void tear_down(void)
{
    for (int i = 0; i < NODES; i++) {
        kill(workers[i].pid, SIGTERM);
        ck_assert_int_eq(command_finish(&workers[i]), 0);
    }
    cluster_stop(&cluster);
    unlink(job_path);
    unlink(text_path);
    ck_assert_msg(rmdir(folder) == 0, "something is left in %s", folder);
}

START_TEST(every_fault_is_named_and_the_cluster_goes_on)
{
    static const struct fault nothing = {.name = "a right job"};
    int shared_memory = count_shared_memory();
    set_up();
    command_start(&command, (const char *const[]){GIMBAL, "events", "-w", NULL});
    ck_assert(command_await(&command, "node-a joined") && command_await(&command, "node-b joined"));
    kill(command.pid, SIGINT);
    command_finish(&command);
    for (size_t i = 0; i < FAULTS; i++) {
        int code = faults[i].happen(&faults[i]);
        ck_assert_msg(code == faults[i].code, "%s: ended with %d: %s", faults[i].name, code,
                      command.err);
        check_words(&faults[i]);
        ck_assert_msg(all_idle(), "%s: not all nodes are alive and free: %s", faults[i].name,
                      command.out);
        if (faults[i].happen == kill_executor || faults[i].happen == kill_worker)
            ck_assert_msg(submit_and_wait(&nothing) == 0, "the next job: %s", command.err);
        for (int node = 0; node < NODES; node++)
            await_no_executor(node);
    }
    /* A table without rows says where the rows are. */
    ck_assert_int_eq(GIMBAL_RUN("jobs"), 0);
    ck_assert_msg(strstr(command.err, "'gimbal jobs -a' also lists") != NULL, "%s", command.err);
    ck_assert_int_eq(GIMBAL_RUN("jobs", "-a"), 0);
    ck_assert_msg(strstr(command.out, "CANCELLED") && strstr(command.out, "DONE"), "%s",
                  command.out);
    tear_down();
    ck_assert_int_eq(count_shared_memory(), shared_memory);
}
END_TEST

SUITE(faults)
{
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 180);
    tcase_add_test(all, every_fault_is_named_and_the_cluster_goes_on);
    return suite_run("faults", all, NULL);
}

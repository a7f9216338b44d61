/* support.c - `gimbal support`: what somebody who looks for an error wants to see, in one archive.
 *
 * It holds what other commands print for whoever runs them: so it has nothing that its owner cannot
 * read, and no secrets, because no command prints one. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/process.h"
#include "coordinator/cli/tar.h"

#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_TOLD 10
#define WORDS_MAX 6
#define JOB "JOB" /* in words and names: stands for the job's id */

struct question {
    const char *file;
    const char *words[WORDS_MAX];
};

static const struct question of_cluster[] = {
    {"versions.txt", {"version", "--all"}},
    {"settings.txt", {"config", "show"}},
    {"doctor.txt", {"doctor"}},
    {"doctor.json", {"doctor", "-o", "json"}},
    {"nodes.txt", {"nodes", "-o", "wide"}},
    {"nodes.json", {"nodes", "-o", "json"}},
    {"jobs.txt", {"jobs", "-a", "-o", "wide"}},
    {"events.txt", {"events"}},
};

static const struct question of_job[] = {
    {"JOB/job.json", {"jobs", JOB, "-o", "json"}},
    {"JOB/plan.json", {"plan", "show", JOB, "-o", "json"}},
    {"JOB/events.jsonl", {"events", JOB, "-o", "jsonl"}},
    {"JOB/logs.txt", {"logs", JOB}},
    {"JOB/times.txt", {"times", JOB}},
};

static const char about[] =
    "What `gimbal support` found: each file is what the command in its first line printed here.\n"
    "There are no keys, tokens or credentials in it, but names of nodes, users, files and jobs,\n"
    "and what ranks logged. Look through it before you send it to anybody.\n";

struct archive {
    FILE *out;
    const char *folder; /* the folder inside the archive */
    time_t now;
    bool quiet;
};

static void add_file(struct archive *archive, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", archive->folder, name);
    tar_add(archive->out, path, text, strlen(text), archive->now);
    free(path);
}

/* "JOB/logs.txt" with the job's id; to be freed. */
static char *name_file(const char *file, const char *job)
{
    return strncmp(file, JOB "/", 4) == 0 ? xasprintf("%s/%s", job, file + 4) : xstrdup(file);
}

/* JSON stays JSON: errors and a bad exit status go into a file beside it. */
static void add_answer(struct archive *archive, const char *file, const char *command,
                       const struct process_answer *answer)
{
    int status = WIFEXITED(answer->status) ? WEXITSTATUS(answer->status) : -1;
    bool is_text = strstr(file, ".txt") != NULL;
    char *text = is_text ? xasprintf("$ %s\n%s%s[exit status %d]\n", command, answer->output,
                                     answer->errors, status)
                         : xstrdup(answer->output);
    if (*text)
        add_file(archive, file, text);
    if (!is_text && (status != 0 || answer->errors[0])) {
        char *name = xasprintf("%s.errors.txt", file);
        char *words = xasprintf("$ %s\n%s[exit status %d]\n", command, answer->errors, status);
        add_file(archive, name, words);
        free(words);
        free(name);
    }
    free(text);
}

static void put(struct archive *archive, const struct question *question, const char *job)
{
    const char *words[WORDS_MAX + 1] = {NULL};
    char *file = name_file(question->file, job), *command = xstrdup("gimbal");
    struct process_answer answer;
    struct error err;
    for (size_t i = 0; question->words[i]; i++) {
        words[i] = strcmp(question->words[i], JOB) == 0 ? job : question->words[i];
        char *longer = xasprintf("%s %s", command, words[i]);
        free(command);
        command = longer;
    }
    if (!archive->quiet)
        fprintf(stderr, "%s\n", command);
    if (process_ask("gimbal", words, NULL, &answer, &err) < 0)
        add_file(archive, file, err.text);
    else
        add_answer(archive, file, command, &answer);
    process_answer_finish(&answer);
    free(command);
    free(file);
}

/* Ask about the newest jobs. Their ids come one per line, the newest last. */
static void put_jobs(struct archive *archive)
{
    const char *const words[] = {"jobs", "-a", "-o", "name", NULL};
    struct error err;
    char *lines;
    size_t count = 0, index = 0;
    if (process_ask_text("gimbal", words, NULL, &lines, &err) < 0)
        return; /* jobs.txt says why */
    for (const char *at = lines; (at = strchr(at, '\n')); at++)
        count++;
    for (char *rest = lines, *job; (job = strsep(&rest, "\n")) && *job; index++)
        for (size_t i = 0; count - index <= JOBS_TOLD && i < sizeof of_job / sizeof *of_job; i++)
            put(archive, &of_job[i], job);
    free(lines);
}

/* The commands that are run get the cluster from the environment. */
static void take_over(const struct common *common)
{
    if (common->address)
        setenv("GIMBAL_ADDRESS", common->address, 1);
    if (common->tls)
        setenv("GIMBAL_TLS", common->tls, 1);
}

static int fill(struct archive *archive, const char *path, struct error *err)
{
    add_file(archive, "README.txt", about);
    for (size_t i = 0; i < sizeof of_cluster / sizeof *of_cluster; i++)
        put(archive, &of_cluster[i], "");
    put_jobs(archive);
    tar_end(archive->out);
    if (fflush(archive->out) == 0 && !ferror(archive->out))
        return EXIT_DONE;
    return error_set(err, EXIT_IO, "'%s': %s", path, strerror(errno));
}

static int run(const struct invocation *invocation, struct error *err)
{
    char folder[64], *path;
    struct archive archive = {
        .folder = folder, .now = time(NULL), .quiet = invocation->common.quiet};
    struct tm parts;
    strftime(folder, sizeof folder, "gimbal-support-%Y%m%d-%H%M%S", gmtime_r(&archive.now, &parts));
    path = invocation->argument_count > 0 ? xstrdup(invocation->arguments[0])
                                          : xasprintf("%s.tar", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), code;
    archive.out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!archive.out) {
        code = error_set(err, exit_of_errno(-errno), "'%s': %s", path, strerror(errno));
        free(path);
        return code;
    }
    take_over(&invocation->common);
    code = fill(&archive, path, err);
    fclose(archive.out);
    if (code != EXIT_DONE)
        unlink(path);
    else
        puts(path);
    free(path);
    return code;
}

const struct command command_support = {
    .name = "support",
    .summary = "Gather what a bug report needs into one archive, without secrets",
    .arguments = "[FILE.tar]",
    .arguments_max = 1,
    .takes = TAKES_ADDRESS,
    .run = run,
};

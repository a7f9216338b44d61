/* support.c - `gimbal support`: what somebody who looks for an error wants to see, in one archive.
 *
 * It holds what other commands print for whoever runs them: so it has nothing that its owner cannot
 * read, and no secrets, because no command prints one. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/process.h"

#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_TOLD 10
#define WORDS_MAX 6
#define JOB "JOB" /* in words and names: stands for the job's id */

struct support_file {
    const char *file;
    const char *words[WORDS_MAX];
};

static const struct support_file of_cluster[] = {
    {"versions.txt", {"version", "--all"}},
    {"settings.txt", {"config", "show"}},
    {"doctor.txt", {"doctor"}},
    {"doctor.json", {"doctor", "-o", "json"}},
    {"nodes.txt", {"nodes", "-o", "wide"}},
    {"nodes.json", {"nodes", "-o", "json"}},
    {"jobs.txt", {"jobs", "-a", "-o", "wide"}},
    {"events.txt", {"events"}},
};

static const struct support_file of_job[] = {
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

/* An archive in the POSIX format (ustar): each file is a header of 512 bytes and its content,
 * padded to a multiple of 512; two empty blocks end it. */
#define BLOCK 512

struct tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[6], version[2], user[32], group[32], device[16], prefix[155], rest[12];
};
_Static_assert(sizeof(struct tar_header) == BLOCK, "as POSIX has it");

static void tar_pad(FILE *out, size_t size)
{
    static const char zeros[BLOCK];
    fwrite(zeros, 1, size, out);
}

/* Append a file; its name has at most 99 bytes. Check ferror(out) for errors. */
static void tar_add(FILE *out, const char *name, const char *bytes, size_t size, int64_t unix_s)
{
    struct tar_header header = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
    unsigned sum = 0;
    snprintf(header.name, sizeof header.name, "%s", name);
    snprintf(header.mode, sizeof header.mode, "%07o", 0600);
    snprintf(header.uid, sizeof header.uid, "%07o", 0);
    snprintf(header.gid, sizeof header.gid, "%07o", 0);
    snprintf(header.size, sizeof header.size, "%011" PRIo64, (uint64_t)size);
    snprintf(header.mtime, sizeof header.mtime, "%011" PRIo64, (uint64_t)unix_s);
    memset(header.checksum, ' ', sizeof header.checksum); /* blank while it is computed */
    for (size_t i = 0; i < sizeof header; i++)
        sum += ((const unsigned char *)&header)[i];
    snprintf(header.checksum, sizeof header.checksum, "%06o", sum);
    fwrite(&header, 1, sizeof header, out);
    fwrite(bytes, 1, size, out);
    tar_pad(out, (BLOCK - size % BLOCK) % BLOCK);
}

static void tar_end(FILE *out)
{
    tar_pad(out, BLOCK);
    tar_pad(out, BLOCK);
}

struct archive {
    FILE *out;
    const char *folder; /* the folder inside the archive */
    time_t now;
    bool quiet;
};

static void support_add_file(struct archive *archive, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", archive->folder, name);
    tar_add(archive->out, path, text, strlen(text), archive->now);
    free(path);
}

/* "JOB/logs.txt" with the job's id; to be freed. */
static char *support_name_file(const char *file, const char *job)
{
    return strncmp(file, JOB "/", 4) == 0 ? xasprintf("%s/%s", job, file + 4) : xstrdup(file);
}

/* JSON stays JSON: errors and a bad exit status go into a file beside it. */
static void support_add_answer(struct archive *archive, const char *file, const char *command,
                               const struct process_answer *answer)
{
    int status = WIFEXITED(answer->status) ? WEXITSTATUS(answer->status) : -1;
    bool is_text = strstr(file, ".txt") != NULL;
    char *text = is_text ? xasprintf("$ %s\n%s%s[exit status %d]\n", command, answer->output,
                                     answer->errors, status)
                         : xstrdup(answer->output);
    if (*text)
        support_add_file(archive, file, text);
    if (!is_text && (status != 0 || answer->errors[0])) {
        char *name = xasprintf("%s.errors.txt", file);
        char *words = xasprintf("$ %s\n%s[exit status %d]\n", command, answer->errors, status);
        support_add_file(archive, name, words);
        free(words);
        free(name);
    }
    free(text);
}

static void support_put(struct archive *archive, const struct support_file *question,
                        const char *job)
{
    const char *words[WORDS_MAX + 1] = {NULL};
    char *file = support_name_file(question->file, job), *command = xstrdup("gimbal");
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
        support_add_file(archive, file, err.text);
    else
        support_add_answer(archive, file, command, &answer);
    process_answer_finish(&answer);
    free(command);
    free(file);
}

/* Ask about the newest jobs. Their ids come one per line, the newest last. */
static void support_put_jobs(struct archive *archive)
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
            support_put(archive, &of_job[i], job);
    free(lines);
}

/* The commands that are run get the cluster from the environment. */
static void support_take_over(const struct common *common)
{
    if (common->address)
        setenv("GIMBAL_ADDRESS", common->address, 1);
    if (common->tls)
        setenv("GIMBAL_TLS", common->tls, 1);
}

static int support_fill(struct archive *archive, const char *path, struct error *err)
{
    support_add_file(archive, "README.txt", about);
    for (size_t i = 0; i < sizeof of_cluster / sizeof *of_cluster; i++)
        support_put(archive, &of_cluster[i], "");
    support_put_jobs(archive);
    tar_end(archive->out);
    if (fflush(archive->out) == 0 && !ferror(archive->out))
        return EXIT_DONE;
    return error_set(err, EXIT_IO, "'%s': %s", path, strerror(errno));
}

static int support_run(const struct invocation *invocation, struct error *err)
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
    support_take_over(&invocation->common);
    code = support_fill(&archive, path, err);
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
    .run = support_run,
};

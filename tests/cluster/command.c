/* command.c - stdout by a pipe, since it is waited for; stderr in a file of memory, since it is
 * not. */
#include "tests/cluster/command.h"

#include "tests/support/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAST_MAX 2000

extern char **environ;

void command_start(struct command *command, const char *const *words)
{
    int ends[2];
    posix_spawn_file_actions_t files;
    *command = (struct command){.pid = 0};
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    command->out_fd = ends[0];
    command->err_fd = memfd_create("err", MFD_CLOEXEC);
    ck_assert_int_ge(command->err_fd, 0);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, command->err_fd, STDERR_FILENO);
    int rc = posix_spawn(&command->pid, words[0], &files, NULL, (char *const *)words, environ);
    ck_assert_msg(rc == 0, "%s: %s", words[0], strerror(rc));
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
}

/* What it has printed to stderr so far. */
static void read_words(struct command *command)
{
    ssize_t got = pread(command->err_fd, command->err, sizeof command->err - 1, 0);
    ck_assert_int_ge(got, 0);
    command->err[got] = '\0';
}

/* 0 at the end of its output. Room is made by dropping the older half. */
static ssize_t read_more(struct command *command)
{
    struct pollfd fd = {.fd = command->out_fd, .events = POLLIN};
    size_t half = sizeof command->out / 2;
    if (command->out_size >= half) {
        memmove(command->out, command->out + half / 2, command->out_size - half / 2);
        command->out_size -= half / 2;
    }
    if (poll(&fd, 1, test_patience_ms(COMMAND_PATIENCE_MS)) != 1) {
        read_words(command);
        ck_abort_msg("nothing more is printed after: %s", command_last(command));
    }
    ssize_t got = read(command->out_fd, command->out + command->out_size, half - 1);
    ck_assert_int_ge(got, 0);
    command->out_size += (size_t)got;
    command->out[command->out_size] = '\0';
    return got;
}

const char *command_last(const struct command *command)
{
    static char words[2 * LAST_MAX + 2];
    size_t out = strlen(command->out), err = strlen(command->err);
    snprintf(words, sizeof words, "%s%s%s", command->out + (out > LAST_MAX ? out - LAST_MAX : 0),
             *command->err ? "\n" : "", command->err + (err > LAST_MAX ? err - LAST_MAX : 0));
    return words;
}

bool command_await(struct command *command, const char *words)
{
    while (!strstr(command->out, words))
        if (read_more(command) == 0) {
            read_words(command);
            return false;
        }
    return true;
}

bool command_pass(struct command *command, const char *words)
{
    if (!command_await(command, words))
        return false;
    const char *rest = strstr(command->out, words) + strlen(words);
    command->out_size = strlen(rest);
    memmove(command->out, rest, command->out_size + 1);
    return true;
}

int command_finish(struct command *command)
{
    int status;
    while (read_more(command) > 0)
        ;
    ck_assert_int_eq(waitpid(command->pid, &status, 0), command->pid);
    read_words(command);
    close(command->out_fd);
    close(command->err_fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Or within so much time; one that is nobody's child any more has, too. */
static bool has_ended(pid_t pid, int patience_ms)
{
    struct pollfd end = {.fd = pidfd_open(pid, 0), .events = POLLIN};
    if (end.fd < 0)
        return true;
    bool ended = poll(&end, 1, patience_ms) == 1;
    close(end.fd);
    return ended;
}

pid_t command_child(pid_t parent)
{
    char path[64];
    int child, living = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (living == 0 && fscanf(file, "%d", &child) == 1)
        living = has_ended(child, 0) ? 0 : child;
    fclose(file);
    return living;
}

void command_await_gone(pid_t pid)
{
    ck_assert_msg(has_ended(pid, test_patience_ms(COMMAND_PATIENCE_MS)), "process %d stays",
                  (int)pid);
}

void command_write_text(const char *folder)
{
    char path[128];
    snprintf(path, sizeof path, "%s/text", folder);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 400; i++)
        fprintf(file, "%d bottles of beer on the wall\n", i);
    ck_assert_int_eq(fclose(file), 0);
}

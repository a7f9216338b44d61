/* main.c - first contact with a device: first [CHECK ...]. A line for each check: whether it holds,
 * seconds, figures. Ends with 1 if one does not hold. */
#include "tests/gpu/first/first.h"

#include "common/base/clock.h"
#include "worker/kernels/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAID_MAX 4096
#define LOG_LINES 16

static const struct first_check *const tables[] = {first_memory, first_beside, first_streams,
                                                   first_kernels, first_peers};
#define TABLES (sizeof tables / sizeof *tables)

const char *first_name(void)
{
    const char *asked = getenv("GIMBAL_TEST_DEVICE");
    return asked ? asked : "cuda";
}

void first_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    fflush(stdout); /* it may be killed */
}

int first_expect(bool holds, struct error *err, const char *format, ...)
{
    char words[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return holds ? 0 : error_set(err, -EIO, "%s", words);
}

static const struct first_check *find(const char *name)
{
    for (size_t table = 0; table < TABLES; table++)
        for (const struct first_check *check = tables[table]; check->name; check++)
            if (strcmp(check->name, name) == 0)
                return check;
    return NULL;
}

/* In the process of the check. */
static int run_inside(const struct first_check *check)
{
    const struct device *device = NULL;
    struct error err = {""};
    int rc = check->unopened ? 0 : device_open(first_name(), &device, &err);
    if (rc == 0)
        rc = check->run(device, &err);
    if (rc < 0)
        first_say("\n%s\n", err.text);
    return rc < 0;
}

/* `alive` is kept open by the process and by all that it starts. */
static pid_t start(const struct first_check *check, int out, int log, int alive)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    char *variable = check->variable ? strdup(check->variable) : NULL;
    if (variable)
        putenv(variable);
    setpgid(0, 0); /* what it starts ends with it */
    dup2(out, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    fcntl(alive, F_SETFD, 0);
    execl("/proc/self/exe", "first", "--inside", check->name, NULL);
    _exit(127);
}

/* How the process and all that it has started ended, which has `alive` at its other end. */
static const char *await(pid_t pid, int alive, int limit_s)
{
    int status = 0;
    struct pollfd ended = {.fd = alive, .events = POLLIN};
    bool late = poll(&ended, 1, limit_s * 1000) == 0;
    kill(-pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (late)
        return "NOT FINISHED";
    if (WIFSIGNALED(status))
        return "CRASHED";
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "holds" : "FAILED";
}

static const char *run_apart(const struct first_check *check, int out, int log)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        abort();
    pid_t pid = start(check, out, log, ends[1]);
    close(ends[1]);
    const char *ended = await(pid, ends[0], check->limit_s);
    close(ends[0]);
    return ended;
}

static void read_back(int fd, char *text)
{
    ssize_t size = pread(fd, text, SAID_MAX - 1, 0);
    text[size > 0 ? size : 0] = '\0';
    close(fd);
}

static void print_indented(char *text, int most)
{
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line && most > 0; line = strsep(&rest, "\n"))
        if (*line) {
            printf("    %.400s\n", line);
            most--;
        }
}

static bool run_outside(const struct first_check *check)
{
    char said[SAID_MAX], log[SAID_MAX];
    int out = memfd_create("said", MFD_CLOEXEC), err = memfd_create("log", MFD_CLOEXEC);
    double begin = clock_s();
    fflush(stdout);
    const char *ended = run_apart(check, out, err);
    bool holds = strcmp(ended, "holds") == 0;
    read_back(out, said);
    read_back(err, log);
    char *rest = said, *figures = strsep(&rest, "\n");
    printf("first %-16s %-12s %5.1f s  %s\n", check->name, ended, clock_s() - begin, figures);
    if (!holds)
        printf("    assumed: %s\n", check->assumption);
    if (rest)
        print_indented(rest, LOG_LINES);
    print_indented(log, LOG_LINES);
    fflush(stdout);
    return holds;
}

int main(int argc, char **argv)
{
    bool holds = true;
    setenv("CUDA_MODULE_LOADING", "LAZY", 0); /* but where a check says otherwise */
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--inside") != 0 && !find(argv[i])) {
            fprintf(stderr, "there is no check '%s'\n", argv[i]);
            return 64;
        }
    if (argc == 3 && strcmp(argv[1], "--inside") == 0)
        return run_inside(find(argv[2]));
    for (int i = 1; i < argc; i++)
        holds = run_outside(find(argv[i])) && holds;
    for (size_t table = 0; table < TABLES && argc < 2; table++)
        for (const struct first_check *check = tables[table]; check->name; check++)
            holds = run_outside(check) && holds;
    return !holds;
}

/* asking.c - runs a program with its output in memory files, and reads them when it has ended. */
#include "coordinator/cli/asking.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "coordinator/cli/child.h"
#include "coordinator/cli/sibling.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATIENCE_MS 120000 /* a doctor starts executors, which load libraries */

static int run(char *const *argv, const char *const *without, int output_fd, int error_fd,
               struct child *child, struct error *err)
{
    int rc = child_start_without(argv, without, output_fd, error_fd, child, err);
    if (rc < 0 || child_wait(child, PATIENCE_MS))
        return rc;
    child_stop(child, 0);
    return error_set(err, -ETIMEDOUT, "%s has not answered within %d s", argv[0],
                     PATIENCE_MS / 1000);
}

static int read_from_start(int fd, const char *name, char **out, struct error *err)
{
    if (lseek(fd, 0, SEEK_SET) < 0)
        return error_set(err, -errno, "%s: %s", name, strerror(errno));
    return file_read_open(fd, name, out, err);
}

static int run_and_read(char *const *argv, const char *const *without, struct answer *out,
                        struct error *err)
{
    struct child child = {0};
    int output_fd = memfd_create("output", MFD_CLOEXEC);
    int error_fd = memfd_create("errors", MFD_CLOEXEC), rc = 0;
    if (output_fd < 0 || error_fd < 0)
        rc = error_set(err, -errno, "memfd_create: %s", strerror(errno));
    if (rc == 0)
        rc = run(argv, without, output_fd, error_fd, &child, err);
    if (rc == 0)
        rc = read_from_start(output_fd, argv[0], &out->output, err);
    if (rc == 0)
        rc = read_from_start(error_fd, argv[0], &out->errors, err);
    out->status = child.status;
    if (output_fd >= 0)
        close(output_fd);
    if (error_fd >= 0)
        close(error_fd);
    return rc;
}

int ask(const char *name, const char *const *words, const char *const *without, struct answer *out,
        struct error *err)
{
    size_t count = 0;
    char *program;
    *out = (struct answer){NULL, NULL, 0};
    int rc = sibling_path(name, &program, err);
    if (rc < 0)
        return rc;
    while (words[count])
        count++;
    char **argv = xcalloc(count + 2, sizeof *argv);
    argv[0] = program;
    memcpy(argv + 1, words, count * sizeof *argv);
    rc = run_and_read(argv, without, out, err);
    if (rc < 0)
        answer_finish(out);
    free(argv);
    free(program);
    return rc;
}

void answer_finish(struct answer *answer)
{
    free(answer->output);
    free(answer->errors);
    *answer = (struct answer){NULL, NULL, 0};
}

/* Fail with the first line of the text; of a daemon's log line, "... msg=\"WORDS\"", only the
 * words. */
static int refuse(const char *name, char *text, struct error *err)
{
    assert(text);
    char *words = strstr(text, " msg=\"");
    words = words ? words + strlen(" msg=\"") : text;
    words[strcspn(words, "\n")] = '\0';
    size_t length = strlen(words);
    if (words != text && length > 0 && words[length - 1] == '"')
        words[length - 1] = '\0';
    return error_set(err, -EPROTO, "%s: %s", name, *words ? words : "it failed without a word");
}

int ask_program(const char *name, const char *const *words, const char *const *without, char **out,
                struct error *err)
{
    struct answer answer;
    int rc = ask(name, words, without, &answer, err);
    if (rc == 0 && answer.status != 0)
        rc = refuse(name, answer.errors, err);
    if (rc == 0) {
        *out = answer.output;
        answer.output = NULL;
    }
    answer_finish(&answer);
    return rc;
}

/* jobfile.c - a job file as text and as a checked job. */
#include "coordinator/cli/jobfile.h"

#include "common/base/memory.h"
#include "coordinator/cli/exit.h"
#include "coordinator/planner/planner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)16 << 20)

/* All of it, with a NUL behind; -errno. */
static int read_all(int fd, char **out)
{
    size_t used = 0, size = 4096;
    char *text = xcalloc(1, size);
    ssize_t n;
    while ((n = read(fd, text + used, size - used - 1)) > 0) {
        used += (size_t)n;
        if (used > FILE_BYTES_MAX)
            break;
        if (used + 1 == size)
            text = xrealloc(text, size *= 2);
    }
    text[used] = '\0';
    *out = text;
    return n < 0 ? -errno : n > 0 ? -EFBIG : 0;
}

int file_read(const char *path, char **out, struct error *err)
{
    char *text = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? -errno : read_all(fd, &text);
    if (fd >= 0)
        close(fd);
    if (rc < 0) {
        free(text);
        return error_set(err, rc, "read '%s': %s", path, strerror(-rc));
    }
    *out = text;
    return 0;
}

int jobfile_load(const char *path, char **text, struct job_config **job, struct error *err)
{
    if (!path)
        return error_set(err, EXIT_USAGE, "needs a job file: -f job.yaml");
    char *content = NULL;
    if (file_read(path, &content, err) < 0 || !content)
        return EXIT_INPUT;
    struct job_config *config = NULL;
    int rc = job_config_parse(content, strlen(content), path, &config, err);
    if (rc == 0) {
        rc = planner_check(config, err);
        if (rc < 0)
            job_config_place(content, strlen(content), path, err);
    }
    if (rc < 0) {
        job_config_destroy(config);
        free(content);
        return EXIT_INPUT;
    }
    *text = content;
    *job = config;
    return EXIT_DONE;
}
